//! The table itself. Sizes of planned tasks are the reference's where its source or package gives them.

use super::{Suite, TaskInfo, TaskStatus};

/// All tasks in the order of their suites.
pub(super) static TASKS: [TaskInfo; 73] = [
    control("acrobot-swingup", "dm_control acrobot/swingup", 0.01, 6, 1, EXACT),
    control("acrobot-swingup-sparse", "dm_control acrobot/swingup_sparse", 0.01, 6, 1, EXACT),
    control("ball-in-cup-catch", "dm_control ball_in_cup/catch", 0.02, 8, 2, EXACT),
    control("cartpole-balance", "dm_control cartpole/balance", 0.01, 5, 1, EXACT),
    control("cartpole-balance-sparse", "dm_control cartpole/balance_sparse", 0.01, 5, 1, EXACT),
    control("cartpole-swingup", "dm_control cartpole/swingup", 0.01, 5, 1, EXACT),
    control("cartpole-swingup-sparse", "dm_control cartpole/swingup_sparse", 0.01, 5, 1, EXACT),
    control("cheetah-run", "dm_control cheetah/run", 0.01, 17, 6, EXACT),
    control("finger-spin", "dm_control finger/spin", 0.02, 9, 2, EXACT),
    control("finger-turn-easy", "dm_control finger/turn_easy", 0.02, 12, 2, EXACT),
    control("finger-turn-hard", "dm_control finger/turn_hard", 0.02, 12, 2, EXACT),
    control("fish-swim", "dm_control fish/swim", 0.04, 24, 5, EXACT),
    control("hopper-hop", "dm_control hopper/hop", 0.02, 15, 4, EXACT),
    control("hopper-stand", "dm_control hopper/stand", 0.02, 15, 4, EXACT),
    control("pendulum-swingup", "dm_control pendulum/swingup", 0.02, 3, 1, EXACT),
    control("reacher-easy", "dm_control reacher/easy", 0.02, 6, 2, EXACT),
    control("reacher-hard", "dm_control reacher/hard", 0.02, 6, 2, EXACT),
    control("walker-run", "dm_control walker/run", 0.025, 24, 6, EXACT),
    control("walker-walk", "dm_control walker/walk", 0.025, 24, 6, EXACT),
    control("walker-stand", "dm_control walker/stand", 0.025, 24, 6, EXACT),
    control("humanoid-stand", "dm_control humanoid/stand", 0.025, 67, 21, EXACT),
    control("humanoid-walk", "dm_control humanoid/walk", 0.025, 67, 21, EXACT),
    control("humanoid-run", "dm_control humanoid/run", 0.025, 67, 21, EXACT),
    locomotion("g1-flat", "MuJoCo Playground G1JoystickFlatTerrain", 103, 29),
    locomotion("g1-rough", "MuJoCo Playground G1JoystickRoughTerrain", 103, 29),
    locomotion("t1-flat", "MuJoCo Playground T1JoystickFlatTerrain", 85, 23),
    locomotion("t1-rough", "MuJoCo Playground T1JoystickRoughTerrain", 85, 23),
    manipulation("lift-peg-upright", "ManiSkill LiftPegUpright-v1", 50),
    manipulation("open-cabinet-door", "ManiSkill OpenCabinetDoor-v1", 100),
    manipulation("open-cabinet-drawer", "ManiSkill OpenCabinetDrawer-v1", 100),
    manipulation("peg-insertion-side", "ManiSkill PegInsertionSide-v1", 100),
    manipulation("pick-cube", "ManiSkill PickCube-v1", 50),
    manipulation("pick-single-ycb", "ManiSkill PickSingleYCB-v1", 50),
    manipulation("place-sphere", "ManiSkill PlaceSphere-v1", 50),
    manipulation("plug-charger", "ManiSkill PlugCharger-v1", 200),
    manipulation("poke-cube", "ManiSkill PokeCube-v1", 50),
    manipulation("pull-cube", "ManiSkill PullCube-v1", 50),
    manipulation("pull-cube-tool", "ManiSkill PullCubeTool-v1", 100),
    manipulation("push-t", "ManiSkill PushT-v1", 100),
    manipulation("roll-ball", "ManiSkill RollBall-v1", 80),
    manipulation("stack-cube", "ManiSkill StackCube-v1", 50),
    manipulation("two-robot-pick-cube", "ManiSkill TwoRobotPickCube-v1", 100),
    manipulation("two-robot-stack-cube", "ManiSkill TwoRobotStackCube-v1", 100),
    manipulation("g1-place-apple-in-bowl", "ManiSkill UnitreeG1PlaceAppleInBowl-v1", 100),
    manipulation("g1-transport-box", "ManiSkill UnitreeG1TransportBox-v1", 100),
    humanoid("h1hand-stand", "HumanoidBench h1hand-stand-v0", 1000, 151),
    humanoid("h1hand-walk", "HumanoidBench h1hand-walk-v0", 1000, 151),
    humanoid("h1hand-run", "HumanoidBench h1hand-run-v0", 1000, 151),
    humanoid("h1hand-maze", "HumanoidBench h1hand-maze-v0", 1000, 151),
    humanoid("h1hand-hurdle", "HumanoidBench h1hand-hurdle-v0", 1000, 151),
    humanoid("h1hand-cube", "HumanoidBench h1hand-cube-v0", 500, 181),
    humanoid("h1hand-bookshelf-simple", "HumanoidBench h1hand-bookshelf_simple-v0", 1000, 308),
    humanoid("h1hand-bookshelf-hard", "HumanoidBench h1hand-bookshelf_hard-v0", 1000, 308),
    humanoid("h1hand-crawl", "HumanoidBench h1hand-crawl-v0", 1000, 151),
    humanoid("h1hand-window", "HumanoidBench h1hand-window-v0", 1000, 171),
    humanoid("h1hand-door", "HumanoidBench h1hand-door-v0", 1000, 155),
    humanoid("h1hand-push", "HumanoidBench h1hand-push-v0", 500, 163),
    humanoid("h1hand-reach", "HumanoidBench h1hand-reach-v0", 1000, 157),
    humanoid("h1hand-basketball", "HumanoidBench h1hand-basketball-v0", 500, 164),
    humanoid("h1hand-truck", "HumanoidBench h1hand-truck-v0", 1000, 216),
    humanoid("h1hand-package", "HumanoidBench h1hand-package-v0", 1000, 173),
    humanoid("h1hand-cabinet", "HumanoidBench h1hand-cabinet-v0", 1000, 213),
    humanoid("h1hand-sit-simple", "HumanoidBench h1hand-sit_simple-v0", 1000, 151),
    humanoid("h1hand-sit-hard", "HumanoidBench h1hand-sit_hard-v0", 1000, 164),
    humanoid("h1hand-balance-simple", "HumanoidBench h1hand-balance_simple-v0", 1000, 164),
    humanoid("h1hand-balance-hard", "HumanoidBench h1hand-balance_hard-v0", 1000, 177),
    humanoid("h1hand-stair", "HumanoidBench h1hand-stair-v0", 1000, 151),
    humanoid("h1hand-slide", "HumanoidBench h1hand-slide-v0", 1000, 151),
    humanoid("h1hand-pole", "HumanoidBench h1hand-pole-v0", 1000, 151),
    humanoid("h1hand-room", "HumanoidBench h1hand-room-v0", 1000, 229),
    humanoid("h1hand-insert-normal", "HumanoidBench h1hand-insert_normal-v0", 1000, 190),
    humanoid("h1hand-insert-small", "HumanoidBench h1hand-insert_small-v0", 1000, 190),
    humanoid("h1hand-powerlift", "HumanoidBench h1hand-powerlift-v0", 1000, 164),
];

const EXACT: TaskStatus = TaskStatus::Exact;
const PLANNED: TaskStatus = TaskStatus::Planned;

/// Sizes and control steps as dm_control 1.0.50 reports them; 1000 steps each.
const fn control(
    name: &'static str,
    reference: &'static str,
    dt_s: f64,
    obs_dim: usize,
    act_dim: usize,
    status: TaskStatus,
) -> TaskInfo {
    TaskInfo {
        name,
        suite: Suite::Control,
        reference,
        dt_s,
        episode_steps: 1000,
        obs_dim: Some(obs_dim),
        act_dim: Some(act_dim),
        status,
        discount: None,
    }
}

/// The actor's observation (`state`): velocities 3 + 3, gravity 3, command 3, joints, their velocities and the last
/// action, phase 4. One action per joint: 29 (G1), 23 (T1).
const fn locomotion(name: &'static str, reference: &'static str, obs_dim: usize, act_dim: usize) -> TaskInfo {
    TaskInfo {
        name,
        suite: Suite::Locomotion,
        reference,
        dt_s: 0.02,
        episode_steps: 1000,
        obs_dim: Some(obs_dim),
        act_dim: Some(act_dim),
        status: PLANNED,
        discount: None,
    }
}

/// The horizon is the reference's `max_episode_steps`, control runs at 20 Hz.
const fn manipulation(name: &'static str, reference: &'static str, horizon: usize) -> TaskInfo {
    TaskInfo {
        name,
        suite: Suite::Manipulation,
        reference,
        dt_s: 0.05,
        episode_steps: horizon,
        obs_dim: None,
        act_dim: None,
        status: PLANNED,
        discount: Some(1.0 - 10.0 / horizon as f64),
    }
}

/// The robot's 76 positions and 75 velocities, then the scene's; 61 actuators at 50 Hz.
const fn humanoid(name: &'static str, reference: &'static str, episode_steps: usize, obs_dim: usize) -> TaskInfo {
    TaskInfo {
        name,
        suite: Suite::Humanoid,
        reference,
        dt_s: 0.02,
        episode_steps,
        obs_dim: Some(obs_dim),
        act_dim: Some(61),
        status: PLANNED,
        discount: None,
    }
}
