//! One state at a time: acceleration, next state and contacts, behind a plain interface.
use crate::dispatch::{Isa, LaneVisitor, Precision, with_lane};
use crate::engine::{Engine, Scratch, State};
use crate::engine_error::EngineError;
use crate::lane::Lane;
use crate::model::Model;
use std::sync::Arc;

/// What one step says about a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// `[nv]` acceleration at the given state.
    pub qacc: Vec<f64>,
    /// `[nq]` after one time step.
    pub qpos: Vec<f64>,
    /// `[nv]` after one time step.
    pub qvel: Vec<f64>,
    /// `[na]` after one time step.
    pub act: Vec<f64>,
    /// Contacts that push at the given state.
    pub ncon: usize,
}

/// Steps single states from a zero warm start.
pub struct Physics {
    one: Box<dyn One>,
}

impl Physics {
    /// Prepares `model` with the lanes of `isa` (see [`Isa::choose`]).
    ///
    /// In f64 the solver's tolerance is tightened to 1e-14: this is the mode that is compared with MuJoCo.
    pub fn new(mut model: Model, precision: Precision, isa: Option<Isa>) -> Result<Self, EngineError> {
        if precision == Precision::F64 {
            model.opt.tolerance = model.opt.tolerance.min(1e-14);
        }
        let isa = Isa::choose(isa)?;
        Ok(Physics { one: with_lane(isa, precision, Build(Arc::new(model)))? })
    }

    /// The model it was made for.
    pub fn model(&self) -> &Model {
        self.one.model()
    }

    /// One step from `qpos: [nq]`, `qvel: [nv]`, `act: [na]` under `ctrl: [nu]`.
    ///
    /// Errors: [`EngineError::Length`] if a length differs.
    pub fn evaluate(&mut self, qpos: &[f64], qvel: &[f64], act: &[f64], ctrl: &[f64]) -> Result<Answer, EngineError> {
        let m = self.one.model();
        let lengths = [
            ("qpos", m.nq, qpos.len()),
            ("qvel", m.nv(), qvel.len()),
            ("act", m.na(), act.len()),
            ("ctrl", m.nu(), ctrl.len()),
        ];
        for (what, expected, got) in lengths {
            if expected != got {
                return Err(EngineError::Length { what, expected, got });
            }
        }
        Ok(self.one.evaluate(qpos, qvel, act, ctrl))
    }
}

trait One {
    fn model(&self) -> &Model;
    fn evaluate(&mut self, qpos: &[f64], qvel: &[f64], act: &[f64], ctrl: &[f64]) -> Answer;
}

struct Build(Arc<Model>);

impl LaneVisitor for Build {
    type Out = Result<Box<dyn One>, EngineError>;
    fn visit<L: Lane>(self) -> Self::Out {
        let engine = Engine::<L>::new(self.0)?;
        let (state, scratch) = (engine.state(), engine.scratch());
        Ok(Box::new(Block { engine, state, scratch }))
    }
}

struct Block<L: Lane> {
    engine: Engine<L>,
    state: State<L>,
    scratch: Scratch<L>,
}

impl<L: Lane> One for Block<L> {
    fn model(&self) -> &Model {
        self.engine.model()
    }

    fn evaluate(&mut self, qpos: &[f64], qvel: &[f64], act: &[f64], ctrl: &[f64]) -> Answer {
        let fill = |to: &mut [L], from: &[f64]| to.iter_mut().zip(from).for_each(|(t, &f)| *t = L::splat(f));
        let s = &mut self.state;
        fill(&mut s.qpos, qpos);
        fill(&mut s.qvel, qvel);
        fill(&mut s.ctrl, ctrl);
        fill(&mut s.act, act);
        s.warm.fill(L::zero());
        self.engine.forward(s, &mut self.scratch);
        let mut qacc = vec![0.0; qvel.len()];
        self.engine.qacc(&self.scratch, 0, &mut qacc);
        let ncon = self.engine.contacts(&self.scratch, 0);
        self.engine.step(s, &mut self.scratch, 1);
        let lane0 = |v: &[L]| v.iter().map(|e| e.get(0)).collect();
        Answer { qacc, qpos: lane0(&s.qpos), qvel: lane0(&s.qvel), act: lane0(&s.act), ncon }
    }
}
