//! The rows of the ladder: drives, loads and what is expected of them.
//!
//! For: data. Must never know: how a row is run. Units: microseconds, MB/s, requests per second.

use cachewright_device::Device;
use cachewright_device::ssd::host::Port;
use cachewright_device::ssd::{Ssd, SsdParams};
use cachewright_ftl::theory;
use cachewright_testkit::drives::Flow;
use cachewright_types::SettingError;
use cachewright_types::declare::Declared;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub enum Measure {
    /// Mean response time, microseconds.
    Mean,
    /// The response time of which a share lies below, microseconds.
    Quantile(f64),
    /// Requests per second.
    Iops,
    /// Million bytes per second.
    Bandwidth,
    /// Pages of the mapping table read.
    MapReads,
    /// Pages of the mapping table programmed.
    MapPrograms,
    /// Pages read because a part of them was written.
    UpdateReads,
    /// Commands to several planes.
    MultiPlaneReads,
    /// Pages moved per block cleaned.
    Moved,
    /// Blocks cleaned.
    Collections,
    /// Pages programmed per page written.
    Amplification,
}

/// One number.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub measure: Measure,
    pub flow: usize,
    pub value: f64,
    pub limit_percent: f64,
    pub theory: bool,
}

impl Expected {
    /// The measure in words.
    pub fn words(&self) -> String {
        let measure = match self.measure {
            Measure::Mean => "mean us".to_owned(),
            Measure::Quantile(share) => format!("p{} us", share * 100.0),
            Measure::Iops => "requests/s".to_owned(),
            Measure::Bandwidth => "MB/s".to_owned(),
            Measure::MapReads => "map reads".to_owned(),
            Measure::MapPrograms => "map programs".to_owned(),
            Measure::UpdateReads => "update reads".to_owned(),
            Measure::MultiPlaneReads => "multi-plane reads".to_owned(),
            Measure::Moved => "pages moved per block".to_owned(),
            Measure::Collections => "blocks cleaned".to_owned(),
            Measure::Amplification => "write amplification".to_owned(),
        };
        let flow = if self.flow > 0 { format!(", flow {}", self.flow) } else { String::new() };
        let theory = if self.theory { " (theory)" } else { "" };
        format!("{measure}{flow}{theory}")
    }
}

/// A flow by shares of the drive's addresses.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    length: u64,
    read_share: f64,
    depth: u64,
    count: u64,
    region: (f64, f64),
    streaming: bool,
}

/// One row.
pub struct Row {
    pub id: &'static str,
    pub name: &'static str,
    pub params: SsdParams,
    pub loads: Vec<Load>,
    pub expected: Vec<Expected>,
}

impl Row {
    /// The flows on a drive.
    pub fn flows(&self, drive: &Ssd) -> Vec<Flow> {
        let capacity = drive.capacity().0 as f64;
        let loads = self.loads.iter().zip(0..);
        loads
            .map(|(load, tenant)| {
                let Load { length, read_share, depth, count, region: (from, to), streaming } =
                    *load;
                let page = 8192;
                let byte = |share: f64| (capacity * share) as u64 / page * page;
                let region = (byte(from), byte(to) - byte(from));
                let align = length.min(page);
                let hot = 0.0;
                Flow { tenant, depth, count, length, align, read_share, region, streaming, hot }
            })
            .collect()
    }

    /// A port per flow.
    pub fn ports(&self) -> Vec<Port> {
        vec![Port { queue_depth: u32::from(u16::MAX), weight: 1 }; self.loads.len()]
    }

    fn load(mut self, load: Load) -> Row {
        self.loads.push(load);
        self
    }

    fn reference(mut self, measure: Measure, value: f64, limit_percent: f64) -> Row {
        let flow = self.loads.len().saturating_sub(1);
        self.expected.push(Expected { measure, flow, value, limit_percent, theory: false });
        self
    }

    fn theory(mut self, measure: Measure, value: f64, limit_percent: f64) -> Row {
        self.expected.push(Expected { measure, flow: 0, value, limit_percent, theory: true });
        self
    }
}

fn row(id: &'static str, name: &'static str, params: SsdParams) -> Row {
    Row { id, name, params, loads: Vec::new(), expected: Vec::new() }
}

/// Uniform random reads of the addresses that hold data.
fn filled(length: u64, depth: u64, count: u64) -> Load {
    Load { region: (0.0, 0.7), ..uniform(length, 1.0, depth, count) }
}

/// Uniform random requests over all addresses.
fn uniform(length: u64, read_share: f64, depth: u64, count: u64) -> Load {
    Load { length, read_share, depth, count, region: (0.0, 1.0), streaming: false }
}

const EMPTY: &[(&str, &str)] = &[("unwritten", "allocate")];
const FILLED: &[(&str, &str)] =
    &[("unwritten", "allocate"), ("fill", "analytic"), ("occupancy", "0.7")];

/// The drive of the reference runs, 512 GB.
fn base(pairs: &[(&str, &str)]) -> Result<SsdParams, SettingError> {
    let mut params = SsdParams::default();
    for (key, text) in [("mapping", "ideal"), ("fill", "empty")].iter().chain(pairs) {
        params.set(key, &cachewright_types::Value::read(text))?;
    }
    Ok(params)
}

/// The drive of the reference runs called SMALL, 16 GiB.
fn small(pairs: &[(&str, &str)]) -> Result<SsdParams, SettingError> {
    let shape = [("channels", "4"), ("chips", "2"), ("dies", "1"), ("blocks", "512")];
    base(&[&shape, [("reclaim.d", "9")].as_slice(), pairs].concat())
}

/// Every row, in the order of the reference.
pub fn rows() -> Result<Vec<Row>, SettingError> {
    let mut rows = reads()?;
    rows.extend(mapped()?);
    rows.extend(writes()?);
    rows.extend(streams()?);
    rows.extend(shared()?);
    rows.extend(cleaning()?);
    Ok(rows)
}

fn reads() -> Result<Vec<Row>, SettingError> {
    use Measure::{Iops, MapReads, Mean, MultiPlaneReads, Quantile};
    let cached = &[("mapping", "cached"), ("unwritten", "allocate")];
    let mapped: Vec<(&str, &str)> = [FILLED, &[("mapping", "cached")]].concat();
    let flow = uniform(4096, 1.0, 1, 100_000);
    let mut rows = vec![
        row("A1", "512 GB, empty, 4K read QD1", base(EMPTY)?)
            .load(flow)
            .reference(Quantile(0.5), 88.906, 0.0)
            .reference(Iops, 11_248.0, 0.1),
        row("A2", "512 GB, empty, 2 MiB of map, 4K read QD1", base(cached)?)
            .load(flow)
            .reference(Mean, 165.686, 5.0)
            .reference(Quantile(0.5), 165.752, 5.0)
            .reference(MapReads, 99_914.0, 5.0),
        row("A3", "16 GiB, empty, 4K read QD1", small(EMPTY)?).load(flow).reference(
            Quantile(0.5),
            88.906,
            0.0,
        ),
        row("A4", "16 GiB, filled, 4K read QD1", small(FILLED)?)
            .load(filled(4096, 1, 100_000))
            .reference(Quantile(0.5), 88.906, 0.0),
        row("A5", "16 GiB, filled, 2 MiB of map, 4K read QD1", small(&mapped)?)
            .load(filled(4096, 1, 100_000))
            .reference(Mean, 151.330, 5.0)
            .reference(MapReads, 81_232.0, 5.0),
        row("A6", "16 GiB, filled, 8K read QD1", small(FILLED)?)
            .load(filled(8192, 1, 100_000))
            .reference(Quantile(0.5), 102.442, 0.0)
            .reference(Iops, 9_762.0, 0.1),
    ];
    let deep = [
        ("A7a", "16 GiB, filled, 4K read QD8", 8, 148.720, 399.544, 53_792.0, 231.0),
        ("A7b", "16 GiB, filled, 4K read QD64", 64, 800.317, 2_786.470, 79_946.0, 4_692.0),
        ("A7c", "16 GiB, filled, 4K read QD256", 256, 3_039.877, 6_694.880, 84_132.0, 18_995.0),
    ];
    for (id, name, depth, mean, p99, iops, planes) in deep {
        rows.push(
            row(id, name, small(FILLED)?)
                .load(filled(4096, depth, 300_000))
                .reference(Mean, mean, 5.0)
                .reference(Quantile(0.99), p99, 10.0)
                .reference(Iops, iops, 5.0)
                .reference(MultiPlaneReads, planes, 30.0),
        );
    }
    Ok(rows)
}

/// Scenario 2 of MQSim's shipped workload: reads of a drive that holds nothing, with a map cache of
/// 2 MiB for each flow (MQSim gives a flow all of it even where it is to be shared). Up to 200,000
/// requests no entry leaves; beyond, changed ones do, and MQSim was made to program their pages of
/// the table, which as shipped it never takes out of their queue.
fn mapped() -> Result<Vec<Row>, SettingError> {
    use Measure::{MapPrograms, MapReads, Mean};
    let entries = [("map_entry", "9B"), ("map_stored_entry", "6B")];
    let cached = [EMPTY, &[("mapping", "cached")], &entries].concat();
    let own = [("map_sharing", "split"), ("map_cache", "4MiB"), ("separation", "by-tenant")];
    let two = [cached.as_slice(), &own].concat();
    let classes = [two.as_slice(), &[("priority_classes", "urgent high")]].concat();
    let load = |from, to, count| Load { region: (from, to), ..uniform(4096, 1.0, 16, count) };
    let pair = |row: Row, count, means: [f64; 2]| {
        row.load(load(0.0, 0.25, count))
            .reference(Mean, means[0], 5.0)
            .load(load(0.5, 0.75, count))
            .reference(Mean, means[1], 5.0)
    };
    let alone = "scenario 2, flow 0 alone, 4K read QD16";
    Ok(vec![
        row("M1a", alone, base(&cached)?)
            .load(load(0.0, 0.5, 200_000))
            .reference(Mean, 218.0, 5.0)
            .reference(MapReads, 199_130.0, 5.0)
            .reference(MapPrograms, 0.0, 0.0),
        row("M1b", "M1a, 300,000 requests, MQSim repaired", base(&cached)?)
            .load(load(0.0, 0.5, 300_000))
            .reference(Mean, 257.0, 5.0)
            .reference(MapReads, 321_376.0, 5.0)
            .reference(MapPrograms, 23_191.0, 10.0),
        pair(row("M2a", "both flows, one class", base(&two)?), 200_000, [290.0, 290.0]),
        pair(row("M2b", "M2a, 300,000 each, MQSim repaired", base(&two)?), 300_000, [318.0, 318.0]),
        pair(row("M3a", "both flows, urgent and high", base(&classes)?), 200_000, [267.0, 302.0]),
        pair(
            row("M3b", "M3a, 300,000 each, MQSim repaired", base(&classes)?),
            300_000,
            [303.0, 338.0],
        ),
    ])
}

fn writes() -> Result<Vec<Row>, SettingError> {
    use Measure::{Iops, Mean, Quantile, UpdateReads};
    Ok(vec![
        row("B1", "16 GiB, empty, 4K write QD1", small(EMPTY)?)
            .load(uniform(4096, 0.0, 1, 100_000))
            .reference(Mean, 765.110, 0.1)
            .reference(Quantile(0.5), 763.965, 0.0)
            .reference(UpdateReads, 1_307.0, 10.0),
        row("B2", "16 GiB, empty, 8K write QD1", small(EMPTY)?)
            .load(uniform(8192, 0.0, 1, 100_000))
            .reference(Quantile(0.5), 777.501, 0.0)
            .reference(Iops, 1_286.0, 0.1),
    ])
}

fn streams() -> Result<Vec<Row>, SettingError> {
    use Measure::{Bandwidth, Mean, Quantile};
    let stream = |depth| Load { streaming: true, ..uniform(131_072, 1.0, depth, 30_000) };
    Ok(vec![
        row("C1a", "512 GB, empty, 128K sequential read QD1", base(EMPTY)?)
            .load(stream(1))
            .reference(Quantile(0.5), 164.458, 5.0)
            .reference(Bandwidth, 797.0, 5.0),
        row("C1b", "512 GB, empty, 128K sequential read QD8", base(EMPTY)?)
            .load(stream(8))
            .reference(Quantile(0.5), 545.136, 5.0)
            .reference(Mean, 545.116, 5.0)
            .reference(Bandwidth, 1_923.0, 5.0),
        row("C2a", "16 GiB, filled, 128K sequential read QD1", small(FILLED)?)
            .load(stream(1))
            .reference(Quantile(0.5), 214.260, 5.0)
            .reference(Bandwidth, 612.0, 5.0),
        row("C2b", "16 GiB, filled, 128K sequential read QD8", small(FILLED)?)
            .load(stream(8))
            .reference(Quantile(0.5), 1_394.112, 5.0)
            .reference(Bandwidth, 752.0, 5.0),
    ])
}

fn shared() -> Result<Vec<Row>, SettingError> {
    use Measure::{Iops, Mean, Quantile};
    let read = uniform(4096, 1.0, 4, 100_000);
    let write = uniform(8192, 0.0, 16, 100_000);
    let (low, high) = ((0.0, 0.5), (0.5, 1.0));
    let groups = [EMPTY, &[("channel_groups", "0-1 2-3")]].concat();
    Ok(vec![
        row("D1", "16 GiB, empty, 4K read QD4", small(EMPTY)?)
            .load(read)
            .reference(Mean, 111.185, 5.0)
            .reference(Quantile(0.99), 262.794, 10.0)
            .reference(Iops, 35_976.0, 5.0),
        row("D2", "16 GiB, empty, 8K write QD16", small(EMPTY)?)
            .load(write)
            .reference(Mean, 1_956.650, 5.0)
            .reference(Quantile(0.99), 6_174.559, 10.0)
            .reference(Iops, 8_176.0, 5.0),
        row("D3", "D1 and D2 together on all channels", small(EMPTY)?)
            .load(Load { region: low, ..read })
            .reference(Mean, 421.038, 5.0)
            .reference(Quantile(0.99), 865.231, 10.0)
            .load(Load { region: high, ..write })
            .reference(Mean, 2_122.930, 5.0),
        row("D4", "D1 on channels 0 and 1, D2 on 2 and 3", small(&groups)?)
            .load(Load { region: low, ..read })
            .reference(Mean, 141.627, 5.0)
            .reference(Quantile(0.99), 340.720, 10.0)
            .load(Load { region: high, ..write })
            .reference(Mean, 3_398.868, 5.0),
    ])
}

/// Cleaning. The theory is that of our drive: a plane keeps 25 of its 512 blocks free and two open,
/// and the data are 0.8 x 0.93 of all pages.
fn cleaning() -> Result<Vec<Row>, SettingError> {
    use Measure::{Amplification, Collections, Iops, Mean, Moved, Quantile};
    let with = |reclaim| small(&[("fill", "analytic"), ("occupancy", "0.8"), ("reclaim", reclaim)]);
    let write = Load { region: (0.0, 0.8), ..uniform(8192, 0.0, 16, 1_000_000) };
    let space = (1.0 - 27.0 / 512.0) / (0.8 * 0.93);
    Ok(vec![
        row("B4g", "16 GiB, 80 % filled, greedy, 8K write QD16", with("greedy")?)
            .load(write)
            .reference(Amplification, 2.560, 5.0)
            .theory(Amplification, theory::greedy(space, 256), 2.0)
            .reference(Moved, 156.33, 5.0)
            .reference(Collections, 9_978.0, 5.0)
            .reference(Iops, 975.0, 10.0)
            .reference(Mean, 16_407.019, 10.0)
            .reference(Quantile(0.5), 870.260, 10.0)
            .reference(Quantile(0.95), 123_100.0, 10.0)
            .reference(Quantile(0.99), 402_000.0, 10.0),
        row("B4r", "16 GiB, 80 % filled, d-choices of 9, same", with("d-choices")?)
            .load(write)
            .theory(Amplification, theory::d_choices(space, 256, 9), 2.0)
            .reference(Amplification, 2.723, 10.0)
            .reference(Moved, 162.46, 5.0)
            .reference(Iops, 887.4, 10.0)
            .reference(Quantile(0.99), 428_700.0, 10.0),
        row("B5", "B4g with 4K writes", with("greedy")?)
            .load(Load { length: 4096, ..write })
            .reference(Moved, 156.32, 5.0)
            .reference(Iops, 941.9, 10.0)
            .reference(Mean, 16_983.244, 10.0)
            .reference(Quantile(0.5), 1_286.165, 15.0),
    ])
}
