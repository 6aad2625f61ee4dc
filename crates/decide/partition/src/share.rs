//! Whole blocks from fractional shares.
//!
//! For: partitioners that divide a remainder. Must never know: the reasons for shares. Units:
//! blocks; the sum is always exact.

/// `total_blocks` in proportion to `weights`, by largest remainder (Hamilton's method). Each tenant
/// gets the floor of its share; then the largest fractions get one block each, the earlier tenant
/// first among equals. Weights that are negative or not finite count as 0; if all are 0, the shares
/// are equal.
pub fn proportional(total_blocks: u32, weights: &[f64]) -> Vec<u32> {
    let clean = |weight: &f64| if weight.is_finite() { weight.max(0.0) } else { 0.0 };
    let largest = weights.iter().map(clean).fold(0.0, f64::max);
    if largest <= 0.0 {
        return equal(total_blocks, weights.len());
    }
    let weights: Vec<f64> = weights.iter().map(|weight| clean(weight) / largest).collect();
    let sum: f64 = weights.iter().sum();
    let exact: Vec<f64> = weights.iter().map(|w| f64::from(total_blocks) * w / sum).collect();
    let mut quotas: Vec<u32> = exact.iter().map(|share| share.floor() as u32).collect();
    let granted: u64 = quotas.iter().copied().map(u64::from).sum();
    let remaining = u64::from(total_blocks).saturating_sub(granted) as usize;
    let mut order: Vec<usize> = (0..quotas.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()).then(a.cmp(&b)));
    for &tenant in order.iter().cycle().take(remaining) {
        quotas[tenant] += 1;
    }
    quotas
}

/// As [`proportional`], with at least `floor_blocks` for each tenant. Tenants with a smaller share
/// get the floor; the others divide the rest.
pub fn proportional_above(total_blocks: u32, weights: &[f64], floor_blocks: u32) -> Vec<u32> {
    let floor = feasible_floor(floor_blocks, weights.len(), total_blocks);
    let mut low = vec![false; weights.len()];
    loop {
        let held = low.iter().filter(|&&is_low| is_low).count() as u32 * floor;
        let open: Vec<usize> = (0..weights.len()).filter(|&tenant| !low[tenant]).collect();
        let open_weights: Vec<f64> = open.iter().map(|&tenant| weights[tenant]).collect();
        let shares = proportional(total_blocks - held, &open_weights);
        let below: Vec<usize> =
            open.iter().zip(&shares).filter(|(_, s)| **s < floor).map(|(&t, _)| t).collect();
        if below.is_empty() {
            let mut quotas = vec![floor; weights.len()];
            for (&tenant, &blocks) in open.iter().zip(&shares) {
                quotas[tenant] = blocks;
            }
            return quotas;
        }
        for tenant in below {
            low[tenant] = true;
        }
    }
}

/// `total_blocks` in equal shares; the first tenants get the remainder, one block each.
pub fn equal(total_blocks: u32, tenants: usize) -> Vec<u32> {
    let count = tenants.max(1) as u32;
    let (each, remaining) = (total_blocks / count, total_blocks % count);
    (0..tenants as u32).map(|tenant| each + u32::from(tenant < remaining)).collect()
}

/// The feasible floor: the floor wanted, or an equal share if that is less.
pub fn feasible_floor(wanted_blocks: u32, tenants: usize, total_blocks: u32) -> u32 {
    wanted_blocks.min(total_blocks / tenants.max(1) as u32)
}

/// Blocks of `count` of the `granules` of a cache, rounded to the nearest.
pub fn granules_blocks(total_blocks: u32, granules: u32, count: u32) -> u32 {
    let (total, parts) = (u64::from(total_blocks), u64::from(granules.max(1)));
    ((total * u64::from(count.min(granules)) + parts / 2) / parts) as u32
}

/// The tenant that holds most blocks, the earlier among equals.
pub fn largest_holder(held: &[u32]) -> Option<usize> {
    (0..held.len()).max_by_key(|tenant| (held[*tenant], std::cmp::Reverse(*tenant)))
}

/// Quotas cut to limits. The blocks cut go to tenants below their limits, in proportion to their
/// quotas, as far as the limits allow.
pub fn within(quotas: &[u32], limits: &[u32]) -> Vec<u32> {
    let mut bounded: Vec<u32> = quotas.iter().zip(limits).map(|(q, limit)| *q.min(limit)).collect();
    let sum = |blocks: &[u32]| blocks.iter().copied().map(u64::from).sum::<u64>();
    let mut remaining = (sum(quotas) - sum(&bounded)) as u32;
    while remaining > 0 {
        let open: Vec<usize> =
            (0..bounded.len()).filter(|&tenant| bounded[tenant] < limits[tenant]).collect();
        if open.is_empty() {
            break;
        }
        let weights: Vec<f64> =
            open.iter().map(|&tenant| f64::from(quotas[tenant].max(1))).collect();
        for (&tenant, share) in open.iter().zip(proportional(remaining, &weights)) {
            let more = share.min(limits[tenant] - bounded[tenant]);
            bounded[tenant] += more;
            remaining -= more;
        }
    }
    bounded
}

/// Quotas on the way from `old` to `new`: at most `share` (0 to 1) of all blocks move. The sum is
/// that of `new`.
pub fn towards(old: &[u32], new: &[u32], share: f64) -> Vec<u32> {
    let sum = |blocks: &[u32]| blocks.iter().copied().map(u64::from).sum::<u64>();
    let max_moved = (share * sum(new) as f64).ceil() as u64;
    let gains: Vec<u32> = old.iter().zip(new).map(|(was, is)| is.saturating_sub(*was)).collect();
    if sum(old) != sum(new) || sum(&gains) <= max_moved {
        return new.to_vec();
    }
    let losses: Vec<u32> = old.iter().zip(new).map(|(was, is)| was.saturating_sub(*is)).collect();
    let part = |changes: &[u32]| {
        let weights: Vec<f64> = changes.iter().copied().map(f64::from).collect();
        proportional(max_moved as u32, &weights)
    };
    let (gained, lost) = (part(&gains), part(&losses));
    old.iter().zip(gained).zip(lost).map(|((was, gain), loss)| was + gain - loss).collect()
}

/// Raises each tenant to its `minimum`. Tenants above their minimum give the blocks, in proportion
/// to their excess. The sum stays; it must be at least that of `minimum`.
pub fn raise(quotas: &mut [u32], minimum: &[u32]) {
    let pairs = || quotas.iter().zip(minimum);
    let missing: Vec<u32> =
        pairs().map(|(quota, minimum)| minimum.saturating_sub(*quota)).collect();
    let beyond = pairs().map(|(quota, minimum)| f64::from(quota.saturating_sub(*minimum)));
    let taken = proportional(missing.iter().sum(), &beyond.collect::<Vec<f64>>());
    for ((quota, more), less) in quotas.iter_mut().zip(missing).zip(taken) {
        *quota = (*quota + more).saturating_sub(less);
    }
}

/// Takes `blocks` (fewer if there are not as many) from what tenants hold beyond `minimum`, in
/// proportion to that, and gives them in proportion to `claims`. Without a claim nothing moves.
pub fn redistribute(quotas: &mut [u32], minimum: &[u32], blocks: u32, claims: &[f64]) {
    if claims.iter().all(|claim| !claim.is_finite() || *claim <= 0.0) {
        return;
    }
    let pairs = || quotas.iter().zip(minimum);
    let beyond: Vec<u32> = pairs().map(|(quota, minimum)| quota.saturating_sub(*minimum)).collect();
    let blocks = blocks.min(beyond.iter().sum());
    let weights: Vec<f64> = beyond.iter().copied().map(f64::from).collect();
    let taken = proportional(blocks, &weights);
    for ((quota, less), more) in quotas.iter_mut().zip(taken).zip(proportional(blocks, claims)) {
        *quota = *quota - less + more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_fractions_get_the_remainder() {
        assert_eq!(proportional(10, &[1.0, 1.0, 1.0]), [4, 3, 3]);
        assert_eq!(proportional(10, &[5.0, 3.0, 1.0]), [6, 3, 1]);
        assert_eq!(proportional(7, &[0.0, 0.0]), [4, 3]);
        assert_eq!(proportional(3, &[f64::NAN, 1.0, -1.0]), [0, 3, 0]);
        assert_eq!(proportional_above(100, &[98.0, 1.0, 1.0], 10), [80, 10, 10]);
        assert_eq!(proportional_above(2, &[98.0, 1.0, 1.0], 10), [2, 0, 0]);
        assert_eq!(within(&[50, 30, 20], &[100, 100, 100]), [50, 30, 20]);
        assert_eq!(within(&[50, 30, 20], &[20, 100, 30]), [20, 50, 30], "the third is full first");
        assert_eq!(within(&[50, 0], &[10, 20]), [10, 20], "no tenant is below its limit");
        assert_eq!(proportional(u32::MAX, &[1e300, 1e300]), [1 << 31, (1 << 31) - 1]);
    }

    #[test]
    fn no_more_than_allowed_changes_hands() {
        assert_eq!(towards(&[50, 30, 20], &[20, 30, 50], 0.1), [40, 30, 30]);
        assert_eq!(towards(&[50, 30, 20], &[45, 30, 25], 0.1), [45, 30, 25]);
        assert_eq!(towards(&[50, 30, 20], &[0, 100, 0], 0.07).iter().sum::<u32>(), 100);
        assert_eq!(towards(&[50, 30], &[20, 80], 0.1), [20, 80], "another cache");
    }

    #[test]
    fn tenants_above_their_minimum_give() {
        let mut quotas = [10, 50, 40];
        raise(&mut quotas, &[30, 20, 30]);
        assert_eq!(quotas, [30, 35, 35]);
        raise(&mut quotas, &[0; 3]);
        assert_eq!(quotas, [30, 35, 35]);
    }

    #[test]
    fn blocks_beyond_a_minimum_go_where_claims_are() {
        let mut quotas = [60, 30, 10];
        redistribute(&mut quotas, &[20, 10, 10], 12, &[0.0, 3.0, 1.0]);
        assert_eq!(quotas, [52, 35, 13], "8 and 4 taken, 9 and 3 given");
        redistribute(&mut quotas, &[20, 10, 10], 12, &[0.0, f64::NAN, 0.0]);
        assert_eq!(quotas, [52, 35, 13]);
        redistribute(&mut quotas, &[50, 35, 10], 100, &[0.0, 0.0, 1.0]);
        assert_eq!(quotas, [50, 35, 15], "no more than there is");
    }
}
