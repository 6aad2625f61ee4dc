//! The published rivals answer each access of random traces as their naive models do.
#![allow(clippy::unwrap_used)] // a failed test may panic

use crate::agree_ghosts::agree;
use crate::rival_models::slru::SegmentLists;

use cachewright_types::Value;

#[test]
fn slru_is_a_list_per_segment() {
    assert!(agree("slru", &[], |c| SegmentLists::new(c, 2, 4 * c / 5, false)) > 10_000);
    let three = [("segments", Value::Int(3)), ("protected_share", Value::Float(0.5))];
    assert!(agree("slru", &three, |c| SegmentLists::new(c, 3, c / 4, false)) > 10_000);
    let fill = [("segments", Value::Int(5)), ("fill_upper", Value::Bool(true))];
    assert!(agree("slru", &fill, |c| SegmentLists::new(c, 5, c / 5, true)) > 10_000);
}
