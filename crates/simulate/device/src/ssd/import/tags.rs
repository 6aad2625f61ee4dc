//! Every tag of MQSim's configuration, and what becomes of it.
//!
//! Source: MQSim's README and its parameter sets (`Device_Parameter_Set`, `Flash_Parameter_Set`,
//! `Host_Parameter_Set`); `default` is what its code uses when the tag is absent.

/// Where a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// A whole number under a key of the device.
    Count(&'static str),
    /// A number.
    Number(&'static str),
    /// Bytes.
    Size(&'static str),
    /// Nanoseconds.
    Time(&'static str),
    /// A word, in pairs of theirs (in capitals) and ours.
    Word(&'static str, &'static [(&'static str, &'static str)]),
    /// Handled together with others, in `device.rs`.
    Joint,
    /// Only these values mean what this simulator does; others are listed.
    Only(&'static [&'static str]),
    /// Has no counterpart, for this reason.
    Nothing(&'static str),
}

/// One tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The name.
    pub name: &'static str,
    /// Another spelling that MQSim accepts or documents.
    pub alias: &'static str,
    /// Its value when absent; empty when nothing follows from that.
    pub default: &'static str,
    /// What becomes of it.
    pub to: To,
}

const fn tag(name: &'static str, default: &'static str, to: To) -> Tag {
    Tag { name, alias: "", default, to }
}

const fn nothing(name: &'static str, why: &'static str) -> Tag {
    tag(name, "", To::Nothing(why))
}

const fn joint(name: &'static str, default: &'static str) -> Tag {
    tag(name, default, To::Joint)
}

const fn also(alias: &'static str, tag: Tag) -> Tag {
    Tag { alias, ..tag }
}

const TRUE_FALSE: &[(&str, &str)] = &[("TRUE", "true"), ("FALSE", "false")];

/// Tags of `Host_Parameter_Set`.
pub const HOST: &[Tag] = &[
    tag("PCIe_Lane_Bandwidth", "0.4", To::Number("lane_rate")),
    tag("PCIe_Lane_Count", "4", To::Count("lanes")),
    joint("SATA_Processing_Delay", ""),
    joint("Enable_ResponseTime_Logging", ""),
    joint("ResponseTime_Logging_Period_Length", ""),
];

/// Tags of `Device_Parameter_Set`.
pub const DEVICE: &[Tag] = &[
    joint("Seed", "123"),
    tag(
        "Enabled_Preconditioning",
        "true",
        To::Word("fill", &[("TRUE", "analytic"), ("FALSE", "empty")]),
    ),
    tag("Memory_Type", "FLASH", To::Only(&["FLASH"])),
    tag("HostInterface_Type", "NVME", To::Word("interface", &[("NVME", "nvme"), ("SATA", "sata")])),
    tag("IO_Queue_Depth", "1024", To::Count("queue_depth")),
    tag("Queue_Fetch_Size", "512", To::Count("fetch_size")),
    tag("Caching_Mechanism", "ADVANCED", To::Only(&["ADVANCED"])),
    joint("Data_Cache_Sharing_Mode", "SHARED"),
    joint("Data_Cache_Capacity", "536870912"),
    tag("Data_Cache_DRAM_Row_Size", "8192", To::Size("dram_row")),
    tag("Data_Cache_DRAM_Data_Rate", "800", To::Number("dram_rate")),
    also(
        "Data_Cache_DRAM_Data_Burst_Size",
        tag("Data_Cache_DRAM_Data_Busrt_Size", "4", To::Size("dram_burst")),
    ),
    tag("Data_Cache_DRAM_tRCD", "13", To::Time("dram_trcd")),
    tag("Data_Cache_DRAM_tCL", "13", To::Time("dram_tcl")),
    tag("Data_Cache_DRAM_tRP", "13", To::Time("dram_trp")),
    tag("Address_Mapping", "PAGE_LEVEL", To::Only(&["PAGE_LEVEL"])),
    tag(
        "Ideal_Mapping_Table",
        "false",
        To::Word("mapping", &[("TRUE", "ideal"), ("FALSE", "cached")]),
    ),
    tag("CMT_Capacity", "2097152", To::Size("map_cache")),
    tag(
        "CMT_Sharing_Mode",
        "SHARED",
        To::Word("map_sharing", &[("SHARED", "shared"), ("EQUAL_PARTITIONING", "split")]),
    ),
    joint("Plane_Allocation_Scheme", "CWDP"),
    joint("Transaction_Scheduling_Policy", "PRIORITY_OUT_OF_ORDER"),
    tag("Overprovisioning_Ratio", "0.07", To::Number("over_provisioning")),
    also("GC_Exect_Threshold", tag("GC_Exec_Threshold", "0.05", To::Number("clean_below"))),
    joint("GC_Block_Selection_Policy", "RGA"),
    tag("Use_Copyback_for_GC", "false", To::Word("copy_back", TRUE_FALSE)),
    tag("Preemptible_GC_Enabled", "true", To::Word("preemptible_cleaning", TRUE_FALSE)),
    tag("GC_Hard_Threshold", "0.005", To::Number("clean_hard_below")),
    nothing("Dynamic_Wearleveling_Enabled", "free blocks are always used oldest first"),
    joint("Static_Wearleveling_Enabled", "true"),
    joint("Static_Wearleveling_Threshold", "100"),
    also("Prefered_suspend_erase_time_for_read", suspend("Preferred_suspend_erase_time_for_read")),
    suspend("Preferred_suspend_erase_time_for_write"),
    suspend("Preferred_suspend_write_time_for_read"),
    tag("Flash_Channel_Count", "8", To::Count("channels")),
    tag("Flash_Channel_Width", "1", To::Count("channel_width")),
    tag("Channel_Transfer_Rate", "300", To::Count("channel_rate")),
    tag("Chip_No_Per_Channel", "4", To::Count("chips")),
    tag("Flash_Comm_Protocol", "NVDDR2", To::Only(&["NVDDR2"])),
];

const fn suspend(name: &'static str) -> Tag {
    nothing(name, "a read suspends whenever `suspend` lets it and it would wait longer")
}

/// Tags of `Flash_Parameter_Set`.
pub const FLASH: &[Tag] = &[
    tag(
        "Flash_Technology",
        "MLC",
        To::Word("cell", &[("SLC", "slc"), ("MLC", "mlc"), ("TLC", "tlc")]),
    ),
    tag(
        "CMD_Suspension_Support",
        "ERASE",
        To::Word(
            "suspend",
            &[
                ("NONE", "none"),
                ("PROGRAM", "program"),
                ("ERASE", "erase"),
                ("PROGRAM_ERASE", "both"),
            ],
        ),
    ),
    tag("Page_Read_Latency_LSB", "75000", To::Time("read_time")),
    tag("Page_Read_Latency_CSB", "75000", To::Time("read_time_csb")),
    tag("Page_Read_Latency_MSB", "75000", To::Time("read_time_msb")),
    tag("Page_Program_Latency_LSB", "750000", To::Time("program_time")),
    tag("Page_Program_Latency_CSB", "750000", To::Time("program_time_csb")),
    tag("Page_Program_Latency_MSB", "750000", To::Time("program_time_msb")),
    tag("Block_Erase_Latency", "3800000", To::Time("erase_time")),
    tag("Block_PE_Cycles_Limit", "10000", To::Count("endurance")),
    tag("Suspend_Erase_Time", "700000", To::Time("suspend_erase_time")),
    also(
        "Suspend_Write_Time",
        tag("Suspend_Program_Time", "100000", To::Time("suspend_program_time")),
    ),
    tag("Die_No_Per_Chip", "2", To::Count("dies")),
    tag("Plane_No_Per_Die", "2", To::Count("planes")),
    tag("Block_No_Per_Plane", "2048", To::Count("blocks")),
    joint("Page_No_Per_Block", "256"),
    tag("Page_Capacity", "8192", To::Size("page")),
    nothing(
        "Page_Metadat_Capacity",
        "the spare area of a page crosses no channel, in MQSim either",
    ),
];

/// Tags that both kinds of flows have.
pub const FLOW: &[Tag] = &[
    nothing("Type", "the name of the element says it"),
    joint("Priority_Class", "HIGH"),
    joint("Device_Level_Data_Caching_Mode", "WRITE_CACHE"),
    joint("Channel_IDs", ""),
    joint("Chip_IDs", ""),
    joint("Die_IDs", ""),
    joint("Plane_IDs", ""),
    joint("Initial_Occupancy_Percentage", ""),
];

/// Tags of `IO_Flow_Parameter_Set_Trace_Based`.
pub const TRACE_FLOW: &[Tag] = &[
    joint("File_Path", ""),
    joint("Percentage_To_Be_Executed", "100"),
    joint("Relay_Count", "1"),
    joint("Time_Unit", "NANOSECOND"),
];

/// Tags of `IO_Flow_Parameter_Set_Synthetic`.
pub const SYNTHETIC_FLOW: &[Tag] = &[
    joint("Working_Set_Percentage", "85"),
    joint("Synthetic_Generator_Type", "QUEUE_DEPTH"),
    joint("Read_Percentage", "100"),
    joint("Address_Distribution", "RANDOM_UNIFORM"),
    joint("Percentage_of_Hot_Region", "0"),
    joint("Generated_Aligned_Addresses", "true"),
    joint("Address_Alignment_Unit", "16"),
    joint("Request_Size_Distribution", "FIXED"),
    joint("Average_Request_Size", "8"),
    joint("Variance_Request_Size", "0"),
    joint("Seed", "12344"),
    joint("Average_No_of_Reqs_in_Queue", "2"),
    also("Intensity", joint("Bandwidth", "262144")),
    joint("Stop_Time", "1000000000"),
    joint("Total_Requests_To_Generate", "0"),
];
