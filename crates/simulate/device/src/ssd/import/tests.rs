//! Both files of a made-up configuration come out as stack files that say the same.

use super::{ImportError, Located, MqsimFile, Scenario};
use proptest::prelude::*;

const CONFIG: &str = "<?xml version=\"1.0\" encoding=\"us-ascii\"?>
<Execution_Parameter_Set>
  <Host_Parameter_Set>
    <PCIe_Lane_Bandwidth>1.00</PCIe_Lane_Bandwidth>
    <PCIe_Lane_Count>4</PCIe_Lane_Count>
    <Enable_ResponseTime_Logging>false</Enable_ResponseTime_Logging>
  </Host_Parameter_Set>
  <Device_Parameter_Set>
    <Seed>321</Seed>
    <Enabled_Preconditioning>false</Enabled_Preconditioning>
    <HostInterface_Type>NVME</HostInterface_Type>
    <IO_Queue_Depth>65535</IO_Queue_Depth>
    <Data_Cache_Capacity>268435456</Data_Cache_Capacity>
    <Data_Cache_Sharing_Mode>EQUAL_PARTITIONING</Data_Cache_Sharing_Mode>
    <Ideal_Mapping_Table>true</Ideal_Mapping_Table>
    <GC_Block_Selection_Policy>RGA</GC_Block_Selection_Policy>
    <Static_Wearleveling_Enabled>false</Static_Wearleveling_Enabled>
    <Flash_Channel_Count>4</Flash_Channel_Count>
    <Flash_Chanel_Width>1</Flash_Chanel_Width>
    <Transaction_Scheduling_Policy>FLIN</Transaction_Scheduling_Policy>
    <Flash_Parameter_Set>
      <Block_No_Per_Plane>512</Block_No_Per_Plane>
      <Page_No_Per_Block>128</Page_No_Per_Block>
      <Page_Capacity>16384</Page_Capacity>
      <Page_Metadat_Capacity>448</Page_Metadat_Capacity>
    </Flash_Parameter_Set>
  </Device_Parameter_Set>
</Execution_Parameter_Set>
";

const WORKLOAD: &str = "<MQSim_IO_Scenarios>
  <IO_Scenario>
    <IO_Flow_Parameter_Set_Trace_Based>
      <Device_Level_Data_Caching_Mode>WRITE_READ_CACHE</Device_Level_Data_Caching_Mode>
      <Channel_IDs>0,1</Channel_IDs>
      <Chip_IDs>0,1,2,3</Chip_IDs>
      <Initial_Occupancy_Percentage>70</Initial_Occupancy_Percentage>
      <File_Path>traces/a \"b\".trace</File_Path>
      <Percentage_To_Be_Executed>50</Percentage_To_Be_Executed>
      <Relay_Count>1</Relay_Count>
      <Time_Unit>MICROSECOND</Time_Unit>
    </IO_Flow_Parameter_Set_Trace_Based>
    <IO_Flow_Parameter_Set_Synthetic>
      <Device_Level_Data_Caching_Mode>TURNED_OFF</Device_Level_Data_Caching_Mode>
      <Channel_IDs>2,3</Channel_IDs>
      <Working_Set_Percentage>50</Working_Set_Percentage>
      <Synthetic_Generator_Type>BANDWIDTH</Synthetic_Generator_Type>
      <Read_Percentage>75</Read_Percentage>
      <Address_Distribution>RANDOM_HOTCOLD</Address_Distribution>
      <Percentage_of_Hot_Region>20</Percentage_of_Hot_Region>
      <Average_Request_Size>8</Average_Request_Size>
      <Seed>7</Seed>
      <Bandwidth>4096000</Bandwidth>
      <Stop_Time>2000000000</Stop_Time>
    </IO_Flow_Parameter_Set_Synthetic>
  </IO_Scenario>
  <IO_Scenario>
    <IO_Flow_Parameter_Set_Synthetic>
      <Synthetic_Generator_Type>QUEUE_DEPTH</Synthetic_Generator_Type>
      <Average_No_of_Reqs_in_Queue>16</Average_No_of_Reqs_in_Queue>
      <Stop_Time>0</Stop_Time>
      <Total_Requests_To_Generate>5000</Total_Requests_To_Generate>
    </IO_Flow_Parameter_Set_Synthetic>
  </IO_Scenario>
</MQSim_IO_Scenarios>
";

/// Traces lie where the workload says.
fn mqsim(
    config: MqsimFile<'_>,
    workload: Option<MqsimFile<'_>>,
) -> Result<Vec<Scenario>, ImportError> {
    let locate = |path: &str| Located { path: path.to_owned(), note: String::new() };
    super::mqsim(config, workload, &locate)
}

fn config(text: &str) -> MqsimFile<'_> {
    MqsimFile { name: "conf/ssd.xml", text }
}

fn workload(text: &str) -> MqsimFile<'_> {
    MqsimFile { name: "load.xml", text }
}

fn has_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|found| found == *line), "no `{line}` in\n{text}");
    }
}

#[test]
fn the_machine_comes_out_as_keys() {
    let [alone] = mqsim(config(CONFIG), None).unwrap().try_into().unwrap();
    assert_eq!(alone.name, "ssd");
    has_lines(
        &alone.stack,
        &[
            "seed = 321",
            "[cache]",
            "capacity = \"256MiB\"",
            "block = \"16KiB\"",
            "partition = \"equal\"",
            "[device.ssd]",
            "system = \"ssd\"",
            "model = \"mqsim-default\"",
            "lane_rate = 1.0",
            "queue_depth = 65535",
            "fill = \"empty\"",
            "mapping = \"ideal\"",
            "channels = 4",
            "block = \"2MiB\"",
            "page = \"16KiB\"",
            "plane_order = \"cwdp\"",
            "reclaim = { name = \"d-choices\", d = 9 }",
            "wear_spread = 0",
            "unwritten = \"allocate\"",
            "channel_rate = 300",
        ],
    );
}

#[test]
fn whatever_is_not_mapped_is_listed_with_its_line() {
    let [alone] = mqsim(config(CONFIG), None).unwrap().try_into().unwrap();
    let notes = alone.notes.join("\n");
    let expected = [
        "conf/ssd.xml, line 6: `Enable_ResponseTime_Logging` is off, so",
        "line 19: `Flash_Chanel_Width` is not a tag of MQSim; nearest is `Flash_Channel_Width`",
        "line 20: `Transaction_Scheduling_Policy` = FLIN is not mapped; taken as OUT_OF_ORDER,",
        "line 25: `Page_Metadat_Capacity` is not mapped",
        "line 21: `Page_Read_Latency_LSB` is absent; set as MQSim would, to 75000",
    ];
    for note in expected {
        assert!(notes.contains(note), "no `{note}` in\n{notes}");
    }
    for note in &alone.notes {
        assert!(alone.stack.contains(note.as_str()), "the stack file lists it as well");
    }
}

#[test]
fn flows_come_out_as_tenants() {
    let scenarios = mqsim(config(CONFIG), Some(workload(WORKLOAD))).unwrap();
    let [first, second] = scenarios.try_into().unwrap();
    assert_eq!((first.name.as_str(), second.name.as_str()), ("load-1", "load-2"));
    has_lines(
        &first.stack,
        &[
            "loop = \"open\"",
            "name = \"flow-0\"",
            "trace = \"traces/a \\\"b\\\".trace\"",
            "format = \"mqsim\"",
            "options = { time_unit = \"us\", devices = \"ignore\" }",
            "stop = \"50%\"",
            "stop = \"2s\"",
            "channel_groups = \"0,1 2,3\"",
            "separation = { name = \"by-tenant\", tenants = 2 }",
            "occupancy = 0.7",
            "write = \"write-back\"",
            "read_fill = true",
            "trace = \"load-1.synth.toml\"",
            "volume = \"flow-1\"",
        ],
    );
    let span = 4 * 4 * 2 * 2 * 512_u64 * 128;
    let span = (span as f64 * 0.93) as u64 * 16_384 / 2;
    let span = (span as f64 * 0.5) as u64 / 8_192 * 8_192;
    let span = cachewright_types::Bytes(span).exact();
    let pattern = format!(
        "pattern = {{ kind = \"hot-cold\", span = \"{span}\", align = \"8KiB\", hot_space = 0.2, \
         hot_access = 0.8, scattered = false }}"
    );
    has_lines(
        &first.synth.unwrap(),
        &[
            "seed = 7",
            "name = \"flow-1\"",
            "duration = \"2s\"",
            "arrival = { kind = \"poisson\", rate = \"1000/s\" }",
            "read_share = 0.75",
            "size = \"4KiB\"",
            &pattern,
        ],
    );
    let notes = first.notes.join("\n");
    for note in ["Caching_Mode` is not mapped", "channel_groups", "as in MQSim, which sends all"] {
        assert!(notes.contains(note), "no `{note}` in\n{notes}");
    }
    has_lines(&second.stack, &["loop = \"closed\"", "queue_depth = 16"]);
    has_lines(&second.synth.unwrap(), &["count = 5000"]);
}

#[test]
fn values_that_are_none_are_refused_with_file_and_line() {
    let words = |text: &str| mqsim(config(text), None).unwrap_err().to_string();
    let bad = CONFIG.replace(">NVME<", ">SCSI<");
    let start = "conf/ssd.xml, line 11: `HostInterface_Type`: found `SCSI`, expected one of NVME";
    assert!(words(&bad).starts_with(start), "{}", words(&bad));
    let bad = CONFIG.replace("Count>4<", "Count>0<");
    let start =
        "conf/ssd.xml, line 5: `PCIe_Lane_Count`: found `0`, expected a whole number from 1";
    assert!(words(&bad).starts_with(start), "{}", words(&bad));
    let bad = CONFIG.replace(">512<", ">40<");
    assert!(words(&bad).contains("`over_provisioning`: found 0.07, expected at least"));
    assert!(words("<A/>").contains("found `<A>`, expected `<Execution_Parameter_Set>`"));
    let none = mqsim(config(CONFIG), Some(workload("<MQSim_IO_Scenarios/>"))).unwrap_err();
    let expected = "load.xml, line 1: found no `<IO_Scenario>`, expected one or more";
    assert_eq!(none.to_string(), expected);
}

#[test]
fn a_threshold_of_cleaning_that_a_drive_never_reaches_is_refused_with_what_fits() {
    let at = |threshold: &str| {
        let tag = format!("<Seed>321</Seed><GC_Exec_Threshold>{threshold}</GC_Exec_Threshold>");
        mqsim(config(&CONFIG.replace("<Seed>321</Seed>", &tag)), None)
    };
    // 35 of 512 blocks are spare and 3 of them open, so that 32 can be free: 0.0625.
    let error = at("0.85").unwrap_err().to_string();
    let start = "conf/ssd.xml, line 9: `GC_Exec_Threshold`: found `0.85`, expected at most 0.0625 \
                 with `Overprovisioning_Ratio` = 0.07: MQSim cleans while fewer than 435 of";
    assert!(error.starts_with(start), "{error}");
    assert!(at("0.0625").is_ok());
    assert!(at("0.07").unwrap_err().to_string().contains("expected at most 0.0625"));
}

proptest! {
    /// Whatever stands between the tags, and wherever a file is cut or changed, the answer is a
    /// stack file or a refusal.
    #[test]
    fn damaged_files_are_refused_or_read(
        at in 0..CONFIG.len(),
        place in 0..WORKLOAD.len(),
        text in prop_oneof![
            Just("18446744073709551615".to_owned()),
            Just("-1".to_owned()),
            Just("0".to_owned()),
            Just("1e400".to_owned()),
            Just("</IO_Scenario>".to_owned()),
            "[<>&/a-zé0-9 ]{0,6}",
        ],
        length in 0..20_usize,
    ) {
        let damaged = |whole: &str, at: usize| {
            let end = (at + length).min(whole.len());
            format!("{}{text}{}", &whole[..at], &whole[end..])
        };
        let (config_text, workload_text) = (damaged(CONFIG, at), damaged(WORKLOAD, place));
        for (one, other) in [(config_text.as_str(), WORKLOAD), (CONFIG, workload_text.as_str())] {
            match mqsim(config(one), Some(workload(other))) {
                Ok(scenarios) => prop_assert!(!scenarios.is_empty()),
                Err(error) => prop_assert!(error.to_string().contains("line ")),
            }
        }
    }

    /// Numbers of any size in any tag.
    #[test]
    fn numbers_of_any_size_are_refused_or_read(
        which in 0..40_usize,
        number in prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), 0..100_u64],
    ) {
        let replaced = |whole: &str| {
            let mut count = 0;
            let parts: Vec<String> = whole
                .split('>')
                .map(|part| match part.split_once('<') {
                    Some((value, tag)) if value.chars().all(|c| c.is_ascii_digit()) => {
                        count += usize::from(!value.is_empty());
                        let hit = !value.is_empty() && count == which;
                        format!("{}<{tag}", if hit { number.to_string() } else { value.into() })
                    }
                    _ => part.to_owned(),
                })
                .collect();
            parts.join(">")
        };
        let (config_text, workload_text) = (replaced(CONFIG), replaced(WORKLOAD));
        for (one, other) in [(config_text.as_str(), WORKLOAD), (CONFIG, workload_text.as_str())] {
            if let Err(error) = mqsim(config(one), Some(workload(other))) {
                prop_assert!(error.to_string().contains("expected"), "{error}");
            }
        }
    }
}
