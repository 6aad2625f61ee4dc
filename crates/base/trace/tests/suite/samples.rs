//! A small valid trace in every format, for the tests that hold for all of them.
//!
//! For: what must hold of every reader. Must never know: readers. Each sample has five or more
//! requests, one of which lies beyond 10 GB; text samples end in a line whose every number is read.

use cachewright_trace::{
    Batch, FORMATS, OnBadRecord, OpenOptions, Record, TraceError, TraceFormat, UnreadableRecord,
    create_writer, open_bytes,
};
use cachewright_types::Op;
use std::collections::BTreeMap;

/// A name that suggests a format which no sample has.
pub const MISLEADING_NAME: &str = "not-a-trace.pdf";

/// The sample of `format`. Panics for a format without one: every format needs one.
pub fn sample(format: &str) -> Vec<u8> {
    match text_sample(format) {
        Some(text) => text.as_bytes().to_vec(),
        None => binary_sample(format),
    }
}

/// The names of the formats that are text.
pub fn text_formats() -> impl Iterator<Item = &'static TraceFormat> {
    FORMATS.iter().filter(|entry| text_sample(entry.name).is_some())
}

fn text_sample(format: &str) -> Option<&'static str> {
    Some(match format {
        "alibaba" => {
            "3,R,35786752,4096,594610\n4,W,20147618816,12288,594972\n3,F,0,0,594973\n\
             3,T,0,4294967296,594974\n7,R,8192,512,594980\n"
        }
        "tencent" => {
            "1538323200,4247200,128,1,1058\n1538323200,138968800,8,0,1063\n\
             1538323199,49413280,16,0,1063\n1538323201,8,1,1,7\n1538323202,16,1,0,7\n"
        }
        "msr" => {
            "128166465299039421,web,3,Read,32256,8192,112509\n\
             128166465299119535,web,3,Read,182082715136,4096,32396\n\
             128166465299134409,src,1,Write,182082719232,4096,17521\n\
             128166465299134410,src,1,Write,0,512,1\n128166465299134411,web,3,Read,512,512,9\n"
        }
        "systor17" => {
            "Timestamp,Response,IOType,LUN,Offset,Size\n\
             1456095145.133076000,0.000806000,R,0,899056122368,131072\n\
             1456095145.126285000,,W,2,4256049987072,122880\n1456095145.2,0.5,W,2,0,512\n\
             1456095145.3,0.000000001,R,0,512,512\n1456095146,1,R,0,1024,512\n"
        }
        "spc" => {
            "0,303567,3584,w,0.000000\n1,55590,3072,W,0.000000\n0,303035740,3584,r,0.026214\n\
             19,1,512,R,0.5\n19,2,512,w,1.75\n"
        }
        "fiu" => {
            "467651 2522 kjournald 644661632 8 W 6 0 98b9cb7e1dd888f9dac2bf08af1c3cb2\n\
             520943 2522 my program 688749776 8 R 6 1 c0ac18a3def2e055d9913d0431241ccc\n\
             520944 1 sh 8 8 W 6 0 0\n520945 1 sh 16 8 W 6 0 1\n520946 1 sh 24 8 R 6 0 2\n"
        }
        "blkparse" => {
            "  8,16   5        1     0.000000000 18615  A   R 1444645666 + 256 <- (8,17) 32\n\
             \x20 8,16   5        2     0.000001850 18615  Q   R 1444645666 + 256 [java]\n\
             \x20 8,16   5        0     0.000012990     0  m   N cfq18615S / insert_request\n\
             259,1   2        3     1.000000517 17022  Q WFS 8 + 16 [x]\n\
             259,1   2        5     1.000000600 17022  Q FWS [jbd2/sda]\n\
             259,1   2        6     1.000000700 17022  Q  DS 2048 + 4194304 [fstrim]\n\
             8,16   2        7     2.000000800 17022  Q   R 64 + 8 [x]\n"
        }
        "fio-iolog" => {
            "fio version 3 iolog\n0 /dev/sdb add\n1 /dev/sdb open\n2 /dev/sdb write 64757760 4096\n\
             5 /dev/sdb read 77474201600 4096\n6 /dev/sdb sync 0 0\n7 f trim 0 4096\n\
             9 f read 4096 4096\n"
        }
        "mqsim" => {
            "938513000 4 264719034 16 0\n938828000 3 197570570 16 0\n938944000 4 8 8 1\n\
             938944001 4 16 8 1\n938944002 0 0 1 1\n"
        }
        "disksim" => {
            "13.191135 0 264719034 8 0\n14.691135 1 8 8 1\n15.000000 0 24 1 9\n\
             16.5 0 32 1 80000000\n17.25 2 64 8 1\n"
        }
        "biosnoop" => {
            "TIME(s)     COMM           PID    DISK      T SECTOR     BYTES  LAT(ms)\n\
             0.000004    supervise      1950   xvda1     W 130925600   4096      0.74\n\
             0.000178    tmux: server   1951   xvda1     WS 13092432   4096   0.10   0.61\n\
             0.001469    jbd2/vda1-8    422    vda       R 4565264    331776    5.11\n\
             0.002       kworker/3:1H   7      vda       FF -1         0         0.02\n\
             0.004       sh             7      vda       R 8          512       0.5\n"
        }
        "ftrace" => {
            "# tracer: nop\n\
             \x20   fio-1234  [003] ..... 1000.000001: block_rq_issue: 259,0 WS 4096 () \
             204800000 + 8 [fio]\n\
             \x20  <idle>-0   [003] d.h.. 1000.000101: block_rq_complete: 259,0 WS () 204800000 \
             + 8 [0]\n\
             \x20 my app-77   [000] d..1. 1000.5: block_rq_issue: 8,16 RA 4096 () 16 + 8 \
             none,0,0 [my]\n\
             \x20      x-7    [000] .... 1000.6: block_rq_issue: 8,16 FF 0 () 0 + 0 [x]\n\
             dd 7 [001] 1000.7: 1 block:block_rq_issue: 8,0 W 512 () 2048 + 1 [dd]\n\
             dd 7 [001] 1000.8: block:block_rq_issue: 8,0 R 4096 () 64 + 8 [dd]\n"
        }
        "etw" => {
            "BeginHeader\nDiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, \
             IOSize, ElapsedTime, DiskNum\nEndHeader\n\
             DiskRead, 1508, sql.exe (1688), 1340, 0xfffffa8011434010, 0x1d02000000, 0x10000, \
             5071, 2\n\
             CSwitch, 1509, Idle (   0), 0, 8\n\
             DiskWrite, 2508.5, sql.exe (1688), 1340, 0xfffffa8011434010, 0x200, 8192, 1, 0\n\
             DiskFlush, 2600, System (   4), 64, 0xfffffa8011434010, 12, 0, 0x060043\n\
             DiskRead, 2601, sh (9), 4, 0x1, 0x400, 512, 1, 0\nDiskRead, 2602, sh (9), 4, 0x1, 0, \
             512, 1, 0\n"
        }
        "iotrace" => {
            "device.name,header.sid,header.timestamp,io.flush,io.lba,io.len,io.operation\n\
             sda,1,50,false,193227744,8,Write\nsdb,2,60,true,0,0,Write\nsda,3,61,false,16,8,Read\n\
             sda,4,70,,,,\nsda,5,71,false,2048,4096,Discard\nsda,6,72,false,8,1,Read\n"
        }
        "k5cloud" => {
            "ID,Timestamp,Type,Offset,Length\n12,0.000000,W,59049095168,4096\n7,0.000125,R,0,512\n\
             12,3.5,R,59049095168,8192\n12,4,W,8192,512\n7,5.5,R,512,1024\n"
        }
        "biotracer" => {
            "4043872\t\t96\t\t49152\t\t5\t\t1398396860.168065791\t\t1398396860.168307510\t\t\
             1398396860.168322874\t\t1398396860.171732249\n\
             40438720 16 8192 4 1398396860.2 1398396860.2 1398396860.3 1398396860.4\n\
             8 1 512 4 1398396861 1398396861 1398396861 1398396861\n\
             8 1 512 5 1398396862 1398396862 1398396862 1398396862\n\
             16 1 512 4 1398396863 1398396863 1398396863 1398396863\n"
        }
        "tectonic" => {
            "op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_name,\
             rs_shard_id,op_count,host_name\n\
             1702511878,12ce23-9e05,40,8388608,0,42350833,348786,getChunkData.NotInitialized,4,1,\
             51\n\
             1702511883,33964c-8bba,40,1953176,1007643,20053641,348786,putChunk.Permanent,7,1,15\n\
             1702511884,12ce23-9e05,40,1706,1969744,42350833,348786,getChunkData.Permanent,4,2,26\n\
             1702511885,12ce23-9e05,40,512,0,42350833,348786,deleteChunk,4,2,26\n\
             1702511886,12ce23-9e05,40,512,4096,42350833,348786,getChunkData.Permanent,5,1,26\n"
        }
        "thesios" => {
            "filename,application,file_offset,op_type,cache_hit,request_io_size_bytes,start_time\n\
             f00d,bigtable,8192,READ,1,4096,1705276800.25\nbeef,spanner,0,WRITE,-1,100,1705276801\n\
             f00d,bigtable,8192,READ,0,4096,1705276802\nf00d,bigtable,0,READ,0,1,1705276803\n\
             beef,spanner,100,WRITE,-1,100,1705276804\n"
        }
        "mooncake" => {
            "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 52, \"hash_ids\": [46]}\n\
             {\"timestamp\": 27482, \"input_length\": 9, \"hash_ids\": []}\n\
             {\"timestamp\": 27483, \"hash_ids\": [5000000]}\n\
             {\"timestamp\": 27484, \"hash_ids\": [46]}\n{\"timestamp\": 27484.5, \"hash_ids\": \
             [3]}\n\
             {\"timestamp\": 27485, \"hash_ids\": [7]}\n"
        }
        "syscall" => {
            "0,16344,5,0,32768,R\n1343,16345,2,15728640000,100,W\n1579,16344,5,0,0,S\n\
             1580,16344,5,32768,4096,R\n1581,16344,6,0,1,W\n"
        }
        "arc" => "2097152000 64 0 0\n42 1 0 1\n20971520 8 0 2\n7 1 0 3\n8 2 0 4\n",
        "ids" => "5000000\n42\n7\n42\n8\n",
        "csv" => {
            "time_us,volume,op,offset_bytes,length_bytes\n0.000,a,W,845975552,131072\n\
             35.081,a,R,84610662400,131072\n35.9,b,T,0,4096\n36,b,F,0,0\n37.5,a,R,512,512\n"
        }
        _ => return None,
    })
}

fn binary_sample(format: &str) -> Vec<u8> {
    match format {
        "blktrace" => (0..6).flat_map(blktrace_event).collect(),
        "vscsi" => (0..6).flat_map(vscsi_record).collect(),
        "oracle-general" => (0..6).flat_map(|n| oracle_record(n, false)).collect(),
        "oracle-general-op-ns" => (0..6).flat_map(|n| oracle_record(n, true)).collect(),
        "raw" => [5_000_000_u64, 42, 7, 42, 8].iter().flat_map(|id| id.to_le_bytes()).collect(),
        "lcs" => lcs_sample(),
        "parquet" => parquet_sample(),
        "synth" => SYNTH.as_bytes().to_vec(),
        other => panic!("`{other}` has no sample"),
    }
}

const SYNTH: &str = r#"[synth]
seed = 7
[[tenant]]
name = "a"
arrival = { kind = "constant", rate = "1/us" }
read_share = 0.5
size = "4KiB"
count = 8
[tenant.pattern]
kind = "sequential"
offset = "20GiB"
span = "16MiB"
"#;

/// Whether a file of `format` holds records, not a description that each byte may change wholly.
pub fn holds_records(format: &str) -> bool {
    format != "synth"
}

/// Bytes of one record of a binary format whose records have one length.
pub fn record_bytes(format: &str) -> Option<usize> {
    match format {
        "vscsi" => Some(32),
        "oracle-general" => Some(24),
        "oracle-general-op-ns" => Some(27),
        "raw" => Some(8),
        _ => None,
    }
}

fn blktrace_event(n: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((0x6561_7400_u32 | 7).to_le_bytes());
    bytes.extend(n.to_le_bytes());
    bytes.extend((1_000 + u64::from(n)).to_le_bytes());
    bytes.extend((u64::from(n) * 20_000_000).to_le_bytes());
    bytes.extend(4096_u32.to_le_bytes());
    bytes.extend((1_u32 | 1 << (16 + n % 2)).to_le_bytes());
    for word in [77_u32, 8 << 20 | 16, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([0; 4]);
    bytes
}

fn vscsi_record(n: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [n, 4096, 1] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([0x28_u16, 0x2a][n as usize % 2].to_le_bytes());
    bytes.extend((1_u16 << 8).to_le_bytes());
    bytes.extend((u64::from(n) * 20_000_000).to_le_bytes());
    bytes.extend((5_633_898_368_802 + u64::from(n)).to_le_bytes());
    bytes
}

fn oracle_record(n: u32, with_op: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((5_633_898 + n).to_le_bytes());
    bytes.extend((u64::from(n) * 10_000_000_000).to_le_bytes());
    bytes.extend(4096_u32.to_le_bytes());
    if with_op {
        bytes.push(1 + (n % 2) as u8);
        bytes.extend(3_u16.to_le_bytes());
    }
    bytes.extend((-1_i64).to_le_bytes());
    bytes
}

/// A file of version 3, whose records are 36 bytes.
fn lcs_sample() -> Vec<u8> {
    const MARK: u64 = 0x1234_5678_9abc_def0;
    let mut bytes = vec![0; 8192];
    bytes[..8].copy_from_slice(&MARK.to_le_bytes());
    bytes[8] = 3;
    bytes[8184..].copy_from_slice(&MARK.to_le_bytes());
    for n in 0..6_u32 {
        bytes.extend((5_633_898 + n).to_le_bytes());
        bytes.extend((u64::from(n) * 10_000_000_000).to_le_bytes());
        bytes.extend(4096_u64.to_le_bytes());
        bytes.extend((7 << 8 | (1 + n % 3)).to_le_bytes());
        bytes.extend(600_u32.to_le_bytes());
        bytes.extend((-1_i64).to_le_bytes());
    }
    bytes
}

/// The columns of the last line of a sample that are read, and what separates them; nothing for all
/// of them. What else stands in a line (processes, other numbers) may be anything.
pub fn columns_read(format: &str) -> Option<(char, &'static [usize])> {
    match format {
        "biosnoop" => Some((' ', &[0, 2, 5, 6])),
        "ftrace" => Some((' ', &[3, 5, 9, 11])),
        "etw" => Some((',', &[1, 5, 6, 8])),
        "iotrace" => Some((',', &[2, 4, 5])),
        "tectonic" => Some((',', &[0, 3, 4, 9])),
        "thesios" => Some((',', &[2, 5, 6])),
        _ => None,
    }
}

/// Whether a trace of `format` has addresses, not names of objects that get some.
pub fn has_addresses(format: &str) -> bool {
    !["tectonic", "thesios"].contains(&format)
}

/// Whether the records of `format` carry times.
pub fn has_times(format: &str) -> bool {
    !["arc", "ids", "raw"].contains(&format)
}

/// Whether the content of `format` has a mark, so that it need not be named.
pub fn is_recognised(format: &str) -> bool {
    format != "raw"
}

fn parquet_sample() -> Vec<u8> {
    let mut batch = Batch::default();
    for n in 0..6_u64 {
        let op = Op::ALL[n as usize % 3];
        let offset_bytes = n * 4_000_000_000 / 512 * 512;
        let volume = n as u32 % 2;
        batch.push(Record { time_ns: n * 1_000, offset_bytes, length_bytes: 4096, op, volume });
    }
    let file = std::env::temp_dir().join(format!(
        "cachewright-sample-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let mut writer = create_writer("parquet", &file, &BTreeMap::new()).expect("can create");
    writer.write(&batch, &["a".to_owned(), "b".to_owned()]).expect("can write");
    writer.finish().expect("can finish");
    let bytes = std::fs::read(&file).expect("was written");
    std::fs::remove_file(&file).expect("was there");
    bytes
}

/// What came of reading bytes to the end, or to the first error.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    pub records: Vec<Record>,
    pub volumes: Vec<String>,
    pub bad: u64,
    pub examples: Vec<UnreadableRecord>,
    pub error: Option<String>,
}

/// Reads `bytes` as `format` (recognised when nothing) under a misleading name.
pub fn read(format: Option<&str>, bytes: &[u8], on_bad_record: OnBadRecord) -> Outcome {
    let options =
        OpenOptions { format: format.map(str::to_owned), on_bad_record, ..OpenOptions::default() };
    read_with(&options, bytes)
}

/// More requests than any sample has, and a bound for descriptions of endless ones.
const MOST_RECORDS: usize = 50_000;

/// Panics within the Parquet library are caught by its reader; here they only make noise.
fn silence_parquet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic.location().is_some_and(|at| at.file().contains("parquet-")) {
                usual(panic);
            }
        }));
    });
}

/// Reads `bytes` by `options` under a misleading name.
pub fn read_with(options: &OpenOptions, bytes: &[u8]) -> Outcome {
    silence_parquet();
    let mut outcome = Outcome::default();
    let refuse = |error: TraceError| Some(error.to_string());
    let mut reader = match open_bytes(MISLEADING_NAME, bytes, options) {
        Ok(reader) => reader,
        Err(error) => return Outcome { error: refuse(error), ..outcome },
    };
    let mut batch = Batch::default();
    outcome.error = loop {
        match reader.read(&mut batch, 1_000) {
            Ok(0) => break None,
            Ok(_) if batch.len() > MOST_RECORDS => break None,
            Ok(_) => {}
            Err(error) => break refuse(error),
        }
    };
    outcome.records = batch.iter().collect();
    outcome.volumes = reader.volumes().to_vec();
    outcome.bad = reader.skipped().bad;
    outcome.examples = reader.skipped().examples.clone();
    outcome
}
