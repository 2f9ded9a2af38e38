//! Losses, slopes and advantages against TRL's (`golden/make_trl.py`).

use grpo::{Aggregate, KlEstimate, KlTerm, Loss, Sequence, Spread, Surrogate, Totals, group_advantage};
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/trl.json")).unwrap()
}

fn row(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn rows(v: &Value) -> Vec<Vec<f64>> {
    v.as_array().unwrap().iter().map(row).collect()
}

fn losses() -> Vec<(&'static str, Loss)> {
    let kl = |weight, estimate| KlTerm { weight, estimate };
    let sequence = Surrogate::Sequence { low: 0.1, high: 0.12 };
    let (grpo, dapo) = (Loss::grpo(), Loss::dapo());
    vec![
        ("grpo", grpo),
        ("grpo_clip_higher", Loss { surrogate: Surrogate::Token { low: 0.2, high: 0.28 }, ..grpo }),
        ("bnpo", Loss { aggregate: Aggregate::TokenMean, ..grpo }),
        ("dr_grpo", Loss::dr_grpo(20)),
        ("dapo", dapo),
        ("dapo_masked", dapo),
        ("cispo", Loss { surrogate: Surrogate::Weighted { cap: 1.3 }, ..Loss::cispo() }),
        ("gspo", Loss { surrogate: sequence, ..Loss::gspo() }),
        ("gspo_tokens", Loss { surrogate: sequence, aggregate: Aggregate::TokenMean, ..Loss::gspo() }),
        ("delta", Loss { ratio_cap: Some(1.4), ..grpo }),
        ("kl", Loss { kl: kl(0.3, KlEstimate::K3), ..grpo }),
        (
            "kl_weighted",
            Loss { kl: kl(0.3, KlEstimate::K3Weighted), surrogate: Surrogate::Token { low: 0.2, high: 0.2 }, ..dapo },
        ),
        ("kl_weighted_sequence", Loss { surrogate: sequence, kl: kl(0.3, KlEstimate::K3Weighted), ..Loss::gspo() }),
        ("kl_dr_grpo", Loss { kl: kl(0.1, KlEstimate::K3), ..Loss::dr_grpo(20) }),
    ]
}

#[test]
fn losses_and_slopes_equal_those_of_trl() {
    let g = golden();
    let lengths: Vec<usize> = row(&g["lengths"]).into_iter().map(|n| n as usize).collect();
    let (new, old, reference) = (rows(&g["new"]), rows(&g["old"]), rows(&g["reference"]));
    let advantages = row(&g["advantages"]);
    let all = losses();
    assert_eq!(all.len(), g["losses"].as_object().unwrap().len(), "every loss of the script is compared");
    for (name, loss) in all {
        let want = &g["losses"][name];
        let masked: Vec<usize> = row(&want["masked"]).into_iter().map(|i| i as usize).collect();
        let kept = |i: usize| if masked.contains(&i) { 0 } else { lengths[i] };
        let totals = Totals::of((0..4).map(kept));
        let mut value = 0.0;
        let slopes = rows(&want["slope"]);
        for i in 0..4 {
            let n = kept(i);
            let mut slope = vec![0.0; n];
            let s = Sequence {
                log_prob: &new[i][..n],
                old: &old[i][..n],
                reference: Some(&reference[i][..n]),
                advantage: advantages[i],
            };
            value += loss.evaluate(&s, totals, &mut slope).loss;
            for t in 0..slopes[i].len() {
                let own = slope.get(t).copied().unwrap_or(0.0);
                assert!((own - slopes[i][t]).abs() < 1e-12, "{name}: row {i}, token {t}: {own} {}", slopes[i][t]);
            }
        }
        let want = want["loss"].as_f64().unwrap();
        assert!((value - want).abs() < 1e-12, "{name}: {value} {want}");
    }
}

#[test]
fn advantages_equal_those_of_trl() {
    let g = golden();
    for (name, spread) in
        [("group", Spread::Sample { eps: 1e-4 }), ("batch", Spread::Batch { eps: 1e-4 }), ("none", Spread::None)]
    {
        let rewards: Vec<f32> = row(&g["normalised"][name]["rewards"]).into_iter().map(|r| r as f32).collect();
        let group: Vec<u32> = (0..rewards.len() as u32).map(|i| i / 4).collect();
        let mut own = vec![0.0; rewards.len()];
        group_advantage(&rewards, &group, spread, &mut own);
        for (a, b) in own.iter().zip(row(&g["normalised"][name]["advantages"])) {
            assert!((f64::from(*a) - b).abs() < 1e-6, "{name}: {a} {b}");
        }
    }
}
