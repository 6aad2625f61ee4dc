//! On-demand allocation of channels: isolated buckets and one shared pool (Algorithm 1).
//!
//! For: how many whole channels each tenant gets, and how many blocks of a pool that all share.
//! Must never know: tenants' blocks, the machine. Units: channels, blocks. Source: Wang et al.
//! (oc-cache), III-B. Differences, where the paper is silent: requests that come when no channel
//! is free any more go on to what is left of the pool instead of being passed over; its last branch
//! never has to enlarge the pool, because line 9 has refused what would not fit (asserted).

/// What a tenant asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// S_r: blocks that it makes use of.
    pub blocks: u32,
    /// R_e: its miss ratio with them, 0 to 1.
    pub miss_ratio: f64,
}

/// What a tenant gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Channels of its own.
    pub bucket_channels: u32,
    /// Blocks of the shared pool.
    pub shared_blocks: u32,
}

/// What came of all demands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// Of each tenant; the error says how many more channels it would have needed.
    pub grants: Vec<Result<Grant, u32>>,
    /// Channels of the pool.
    pub shared_channels: u32,
    /// Channels that nobody has.
    pub free_channels: u32,
}

/// Divides `free_channels` of `channel_blocks` blocks each. What is left over of a tenant's need
/// after whole channels goes to the pool if it is below `watermark` (W_u) of a channel, else it
/// gets one channel more. Who gains most per block comes first, the earlier of equals.
pub fn allocate(
    demands: &[Demand],
    free_channels: u32,
    channel_blocks: u32,
    watermark: f64,
) -> Allocation {
    let size = u64::from(channel_blocks.max(1));
    let gain = |at: usize| (1.0 - demands[at].miss_ratio) / f64::from(demands[at].blocks.max(1));
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|a, b| gain(*b).total_cmp(&gain(*a)).then(a.cmp(b)));
    let mut grants = vec![Ok(Grant::default()); demands.len()];
    let (mut free, mut shared_blocks) = (u64::from(free_channels), 0_u64);
    for tenant in order {
        let need = u64::from(demands[tenant].blocks);
        let shared = shared_blocks.div_ceil(size);
        let room = (shared + free) * size - shared_blocks;
        if need > room {
            grants[tenant] = Err((need - room).div_ceil(size) as u32);
            continue;
        }
        let (bucket, left) = if need.div_ceil(size) <= free {
            let left = need % size;
            let pooled = (left as f64) < watermark * size as f64;
            if pooled { (need / size, left) } else { (need / size + 1, 0) }
        } else {
            (free, need - free * size)
        };
        shared_blocks += left;
        let grown = shared_blocks.div_ceil(size) - shared;
        debug_assert!(bucket + grown <= free, "what line 9 lets pass fits");
        free = free.saturating_sub(bucket + grown);
        grants[tenant] = Ok(Grant { bucket_channels: bucket as u32, shared_blocks: left as u32 });
    }
    let shared_channels = shared_blocks.div_ceil(size) as u32;
    Allocation { grants, shared_channels, free_channels: free as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs in the order in which they are looked at.
    fn allocated(needs: &[u32], free: u32, watermark: f64) -> Allocation {
        let gain = |at: usize| 0.9 - 0.01 * at as f64;
        let demand = |(at, blocks): (usize, &u32)| Demand {
            blocks: *blocks,
            // The gain per block falls from one to the next.
            miss_ratio: 1.0 - gain(at) * f64::from(*blocks) / 10_000.0,
        };
        let demands: Vec<Demand> = needs.iter().enumerate().map(demand).collect();
        allocate(&demands, free, 100, watermark)
    }

    fn grant(bucket_channels: u32, shared_blocks: u32) -> Result<Grant, u32> {
        Ok(Grant { bucket_channels, shared_blocks })
    }

    /// Lines 13 to 19: 2 channels and 30 blocks, below half a channel, of the pool.
    #[test]
    fn a_small_rest_goes_to_the_pool() {
        let found = allocated(&[230, 40], 8, 0.5);
        assert_eq!(found.grants, [grant(2, 30), grant(0, 40)]);
        assert_eq!((found.shared_channels, found.free_channels), (1, 5));
    }

    /// Lines 20 to 22: 60 blocks are above the watermark, 50 are not below it.
    #[test]
    fn a_large_rest_gets_a_channel_more() {
        let found = allocated(&[260, 150], 8, 0.5);
        assert_eq!(found.grants, [grant(3, 0), grant(2, 0)]);
        assert_eq!((found.shared_channels, found.free_channels), (0, 3));
    }

    /// Lines 23 to 28: 2 channels are left, and 80 blocks of the pool's one channel.
    #[test]
    fn who_comes_when_channels_run_out_takes_all_and_the_rest_from_the_pool() {
        let found = allocated(&[20, 240], 3, 0.5);
        assert_eq!(found.grants, [grant(0, 20), grant(2, 40)]);
        assert_eq!((found.shared_channels, found.free_channels), (1, 0));
    }

    /// Lines 9 and 10: 2 channels and 80 blocks are left; 290 need one channel more.
    #[test]
    fn who_does_not_fit_at_all_is_told_what_is_missing() {
        let found = allocated(&[20, 290, 100], 3, 0.5);
        assert_eq!(found.grants, [grant(0, 20), Err(1), grant(1, 0)]);
        assert_eq!((found.shared_channels, found.free_channels), (1, 1));
        assert_eq!(allocated(&[500], 2, 0.5).grants, [Err(3)]);
    }

    /// The paper's loop ends here; the pool still has 60 blocks.
    #[test]
    fn without_free_channels_the_rest_of_the_pool_is_given_out() {
        let found = allocated(&[40, 100, 50, 20], 2, 0.5);
        assert_eq!(found.grants, [grant(0, 40), grant(1, 0), grant(0, 50), Err(1)]);
        assert_eq!((found.shared_channels, found.free_channels), (1, 0));
    }

    #[test]
    fn the_watermark_decides_and_gain_per_block_orders() {
        assert_eq!(allocated(&[210], 8, 0.0).grants, [grant(3, 0)], "never the pool");
        assert_eq!(allocated(&[290], 8, 1.0).grants, [grant(2, 90)], "always the pool");
        let demand = |blocks, miss_ratio| Demand { blocks, miss_ratio };
        let found = allocate(&[demand(100, 0.9), demand(100, 0.1)], 1, 100, 0.5);
        assert_eq!(found.grants, [Err(1), grant(1, 0)], "the second gains more");
        assert_eq!(allocate(&[], 3, 0, 0.5).free_channels, 3);
    }
}
