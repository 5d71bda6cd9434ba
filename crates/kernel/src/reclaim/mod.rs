//! Freeing pages: kswapd, direct and limit reclaim over one pass.
//!
//! Start with [`pass`] (what all of them do) and [`kswapd`]; [`direct`] and [`limit`] are [`run`]s for
//! a task that needs pages now.

pub mod direct;
pub mod kswapd;
pub mod limit;
pub mod pass;
pub mod pause;
pub mod run;
pub mod throttle;
pub mod vmpressure;
pub mod wake;
