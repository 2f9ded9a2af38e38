//! The examples do what they say.

#[path = "../examples/mpc.rs"]
#[allow(dead_code)]
mod mpc;
#[path = "../examples/own_robot.rs"]
#[allow(dead_code)]
mod own_robot;

#[test]
fn the_own_robot_balances_and_drives_in_every_lane() {
    let (mean, fallen) = own_robot::drive().unwrap();
    // 250 would be the wanted speed from the first step on
    assert!(mean > 200.0 && fallen == 0, "mean return {mean}, {fallen} fell");
}

#[test]
fn planning_with_the_model_swings_the_pole_up_and_keeps_it_there() {
    let out = mpc::swing_up().unwrap();
    // hanging down gives less than 0.1 a step
    assert!(out.total > 0.5 * out.steps as f32 && out.last > 0.9, "return {}, at the end {}", out.total, out.last);
}
