//! The action value as a distribution, with a predictor of the features it will see next.

use candle_core::{Result, Tensor};
use onpolicy::dense::{Activation, Norm};
use onpolicy::params::{Params, ParamsBuilder};
use onpolicy::{Bundle, BundleError, Mlp, Noise, Persist, Wants};

use crate::config::CriticConfig;
use crate::ops::AddRow;
use crate::support::Support;

/// Weight of the learnable prior among the logits; with it an untrained critic says 0.
const PRIOR: f32 = 40.9;

/// Q(s, a) as a categorical distribution.
///
/// ```text
/// z      = W₂·silu(rms(W₁·[s, a]))                    features
/// logits = W₄·silu(rms(W₃·silu(z))) + 40.9·p₀         p₀ starts as the histogram of 0
/// Q      = softmax(logits)·atoms
/// pred   = W₆·silu(rms(W₅·silu(z)))                   estimate of the next state's z
/// ```
#[derive(Clone, Debug)]
pub struct Critic {
    support: Support,
    encoder: Mlp,
    head: Mlp,
    predictor: Mlp,
    prior: Params,
}

/// What the critic says about a batch.
pub struct Judged {
    /// `[B, width]`
    pub features: Tensor,
    /// `[B, bins]`
    pub logits: Tensor,
}

impl Critic {
    /// For observations and actions of those lengths. The configuration must have been checked.
    pub fn new(config: &CriticConfig, obs_dim: usize, action_dim: usize, noise: &mut Noise) -> Result<Self> {
        let support = Support::new(config.low, config.high, config.bins);
        let w = config.width;
        let mut net =
            |act, input, output| Mlp::uniform_width(act, input, w, output, 2, Norm::Rms, Activation::Silu, 1.0, noise);
        let encoder = net(Activation::None, obs_dim + action_dim, w)?;
        let (head, predictor) = (net(Activation::Silu, w, config.bins)?, net(Activation::Silu, w, w)?);
        let mut zero = vec![0.0; config.bins];
        support.target(0.0, &mut zero);
        let mut prior = ParamsBuilder::default();
        prior.add_values("prior", &[config.bins], &zero);
        Ok(Critic { support, encoder, head, predictor, prior: prior.build()? })
    }

    /// Its atoms.
    pub fn support(&self) -> &Support {
        &self.support
    }

    /// All parameters: prior, encoder, head, predictor.
    pub fn params(&self) -> [&Params; 4] {
        [&self.prior, self.encoder.params(), self.head.params(), self.predictor.params()]
    }

    /// Features and logits of states `[B, O]` with actions `[B, A]`.
    pub fn judge(&self, obs: &Tensor, action: &Tensor, wants: Wants) -> Result<Judged> {
        let features = self.encoder.forward(&Tensor::cat(&[obs, action], 1)?, wants)?;
        let (inner, prior) = match wants {
            Wants::Nothing => (Wants::Nothing, self.prior.var().detach()),
            Wants::Input => (Wants::Input, self.prior.var().detach()),
            Wants::Params | Wants::All => (Wants::All, self.prior.var().as_tensor().clone()),
        };
        let logits = self.head.forward(&features, inner)?.apply_op2(&prior, AddRow(PRIOR))?;
        Ok(Judged { features, logits })
    }

    /// Q, `[B]`. With [`Wants::Input`] it can be differentiated through the action.
    pub fn value(&self, obs: &Tensor, action: &Tensor, wants: Wants) -> Result<Tensor> {
        self.support.expectation(&self.judge(obs, action, wants)?.logits)
    }

    /// The predictor's estimate of the next features, `[B, width]`.
    pub fn predict(&self, judged: &Judged) -> Result<Tensor> {
        self.predictor.forward(&judged.features, Wants::All)
    }
}

impl Persist for Critic {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        self.prior.save(prefix, to);
        self.encoder.params().save(&format!("{prefix}.encoder"), to);
        self.head.params().save(&format!("{prefix}.head"), to);
        self.predictor.params().save(&format!("{prefix}.predictor"), to);
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> std::result::Result<(), BundleError> {
        self.prior.load(prefix, from)?;
        self.encoder.params_mut().load(&format!("{prefix}.encoder"), from)?;
        self.head.params_mut().load(&format!("{prefix}.head"), from)?;
        self.predictor.params_mut().load(&format!("{prefix}.predictor"), from)
    }
}
