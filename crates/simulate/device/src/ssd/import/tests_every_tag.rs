//! Every tag of MQSim's files has an effect or a note.

use super::{Located, MqsimFile, mqsim, tags, traces};

/// The tags of a group as lines, with values over their defaults.
fn group(name: &str, tables: &[&[tags::Tag]], over: &[(&str, &str)], inner: &str) -> String {
    let mut text = format!("<{name}>\n");
    for tag in tables.iter().flat_map(|table| table.iter()) {
        let set = over.iter().find(|(name, _)| *name == tag.name).map(|(_, value)| *value);
        let value = set.unwrap_or(tag.default);
        if !value.is_empty() {
            text.push_str(&format!("<{0}>{value}</{0}>\n", tag.name));
        }
    }
    format!("{text}{inner}</{name}>\n")
}

/// What tags without a default of their own are set to.
const SHIPPED: &[(&str, &str)] = &[
    ("SATA_Processing_Delay", "400000"),
    ("Enable_ResponseTime_Logging", "true"),
    ("ResponseTime_Logging_Period_Length", "2000000"),
    ("Dynamic_Wearleveling_Enabled", "true"),
    ("Preferred_suspend_erase_time_for_read", "700000"),
    ("Preferred_suspend_erase_time_for_write", "700000"),
    ("Preferred_suspend_write_time_for_read", "100000"),
    ("Page_Metadat_Capacity", "448"),
    ("Type", "SYNTHETIC"),
    ("Channel_IDs", "0,1,2,3,4,5,6,7"),
    ("Chip_IDs", "0,1,2,3"),
    ("Die_IDs", "0,1"),
    ("Plane_IDs", "0,1"),
    ("Initial_Occupancy_Percentage", "70"),
    ("File_Path", "traces/a.trace"),
    ("Static_Wearleveling_Threshold", "100"),
];

fn files() -> (String, String) {
    let flash = group("Flash_Parameter_Set", &[tags::FLASH], SHIPPED, "");
    let device = group("Device_Parameter_Set", &[tags::DEVICE], SHIPPED, &flash);
    let host = group("Host_Parameter_Set", &[tags::HOST], SHIPPED, "");
    let config = format!("<Execution_Parameter_Set>\n{host}{device}</Execution_Parameter_Set>\n");
    let flow = |kind: &str, table, over: &[(&str, &str)]| {
        let over = [over, SHIPPED].concat();
        let name = format!("IO_Flow_Parameter_Set_{kind}");
        let tables = [tags::FLOW, table];
        group("IO_Scenario", &[], &[], &group(&name, &tables, &over, ""))
    };
    let workload = [
        flow("Trace_Based", tags::TRACE_FLOW, &[]),
        flow("Synthetic", tags::SYNTHETIC_FLOW, &[]),
        flow("Synthetic", tags::SYNTHETIC_FLOW, &[("Synthetic_Generator_Type", "BANDWIDTH")]),
    ];
    let workload = format!("<MQSim_IO_Scenarios>\n{}</MQSim_IO_Scenarios>\n", workload.concat());
    (config, workload)
}

/// Everything that comes out of both files; a refusal is an answer too.
fn answer(config: &str, workload: &str) -> String {
    let config = MqsimFile { name: "ssdconfig.xml", text: config };
    let workload = MqsimFile { name: "workload.xml", text: workload };
    let locate = |path: &str| Located { path: path.to_owned(), note: String::new() };
    match mqsim(config, Some(workload), &locate) {
        Ok(scenarios) => {
            let parts = scenarios.iter().map(|made| {
                let synth = made.synth.as_deref().unwrap_or_default();
                format!("{}\n{synth}\n{}\n", made.stack, made.notes.join("\n"))
            });
            parts.collect()
        }
        Err(error) => error.to_string(),
    }
}

/// Another value than the one given, of the same kind.
fn other(value: &str) -> String {
    match value {
        "true" => "false".to_owned(),
        "false" => "true".to_owned(),
        "" => "x".to_owned(),
        text => match text.parse::<u64>() {
            Ok(0) => "4".to_owned(),
            Ok(number @ 1..=3) => (number + 1).to_string(),
            Ok(number) => (number / 2 + 1).to_string(),
            Err(_) => format!("{text}X"),
        },
    }
}

#[test]
fn every_tag_has_an_effect_or_a_note() {
    let (config, workload) = files();
    let before = answer(&config, &workload);
    assert!(before.contains("[device.ssd]"), "{before}");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<String>>();
    let (config_lines, workload_lines) = (lines(&config), lines(&workload));
    let mut seen = 0;
    for (of_config, all) in [(true, &config_lines), (false, &workload_lines)] {
        for (index, line) in all.iter().enumerate() {
            let Some((tag, rest)) = line.strip_prefix('<').and_then(|line| line.split_once('>'))
            else {
                continue;
            };
            let Some((value, _)) = rest.split_once("</") else { continue };
            seen += 1;
            let mut changed = all.clone();
            changed[index] = format!("<{tag}>{}</{tag}>", other(value));
            let changed = changed.join("\n") + "\n";
            let after = match of_config {
                true => answer(&changed, &workload),
                false => answer(&config, &changed),
            };
            let file = if of_config { "ssdconfig.xml" } else { "workload.xml" };
            let place = format!("{file}, line {}: `{tag}`", index + 1);
            assert!(
                after != before || before.contains(&place),
                "{place} = {value} is dropped: {} changes nothing",
                other(value)
            );
        }
    }
    assert!(seen > 90, "{seen} tags");
}

#[test]
fn traces_are_listed_and_taken_from_where_they_lie() {
    let (config, workload) = files();
    let source = |text| MqsimFile { name: "a.xml", text };
    assert_eq!(traces(source(&workload)).unwrap(), ["traces/a.trace"]);
    let locate =
        |path: &str| Located { path: format!("../xml/{path}"), note: "not there".to_owned() };
    let made = mqsim(source(&config), Some(source(&workload)), &locate).unwrap();
    assert!(made[0].stack.contains("trace = \"../xml/traces/a.trace\""));
    assert!(
        made[0].notes.iter().any(|note| note.ends_with("`File_Path` = traces/a.trace: not there"))
    );
}

#[test]
fn times_classes_and_logs_are_mapped() {
    let (config, workload) = files();
    let text = answer(&config, &workload);
    for line in [
        "throughput_window = \"2ms\"",
        "stop = \"1s\"\nrepeat = true",
        "count = 1000000 # sent again until the tenant stops",
        "duration = \"1s\"",
        "map_entry = \"9B\"\nmap_stored_entry = \"6B\"",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
    assert!(!text.contains("priority_classes"), "one flow has one class");
    let flows: String = ["URGENT", "LOW"]
        .map(|class| {
            let over = [("Priority_Class", class)];
            let tables = [tags::FLOW, tags::SYNTHETIC_FLOW];
            group("IO_Flow_Parameter_Set_Synthetic", &tables, &over, "")
        })
        .concat();
    let flows = group("IO_Scenario", &[], &[], &flows);
    let workload = format!("<MQSim_IO_Scenarios>\n{flows}</MQSim_IO_Scenarios>\n");
    let text = answer(&config, &workload);
    assert!(text.contains("priority_classes = \"urgent low\""), "{text}");
    let plain = config.replace(">PRIORITY_OUT_OF_ORDER<", ">OUT_OF_ORDER<");
    let text = answer(&plain, &workload);
    assert!(!text.contains("priority_classes ="), "{text}");
    assert!(text.contains("`Priority_Class` changes nothing: `Transaction_Scheduling_Policy`"));
}
