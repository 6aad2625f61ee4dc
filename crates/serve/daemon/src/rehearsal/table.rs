//! A rehearsal as text for people: one table of response times, and what else there is to say.

use cachewright_result::rehearsal::{RehearsalAnswer, RehearsedCase};
use cachewright_types::{Bytes, Nanos};

/// The text of an answer.
pub fn of(answer: &RehearsalAnswer) -> String {
    let mut lines = vec![format!(
        "{} under {}, in virtual time: cache on {}, volumes on {}",
        answer.stack, answer.recording, answer.drive, answer.backing
    )];
    for case in &answer.cases {
        lines.push(String::new());
        lines.push(title(case));
        lines.extend(case_lines(case));
    }
    lines.join("\n")
}

fn title(case: &RehearsedCase) -> String {
    let named = match case.what_if.is_empty() {
        true => "as it is".to_owned(),
        false => format!("what if {}", case.what_if.join(", ")),
    };
    let capacity = Bytes(case.capacity_bytes);
    format!("{named}: {capacity}, {}, {}, {}", case.policy, case.partition, case.write)
}

fn case_lines(case: &RehearsedCase) -> Vec<String> {
    let mut rows = vec![
        ["tenant", "hit ratio", "kind", "requests", "mean", "p50", "p99", "p99.9", "errors"]
            .map(str::to_owned),
    ];
    for tenant in &case.tenants {
        for (place, kind) in tenant.responses.iter().enumerate() {
            let own = |text: String| if place == 0 { text } else { String::new() };
            rows.push([
                own(tenant.name.clone()),
                own(format!("{:.4}", tenant.hit_ratio)),
                kind.kind.clone(),
                kind.count.to_string(),
                time(kind.mean_us),
                time(kind.p50_us),
                time(kind.p99_us),
                time(kind.p999_us),
                kind.errors.to_string(),
            ]);
        }
    }
    let mut lines = aligned(&rows, &[0, 2]);
    let log = &case.log;
    lines.push(format!(
        "log: {} appended, {} moved by cleaning, write amplification {:.2}",
        Bytes(log.appended_bytes),
        Bytes(log.moved_bytes),
        log.write_amplification
    ));
    for device in &case.devices {
        let flash = device.write_amplification;
        let flash = flash.map(|found| format!(", write amplification {found:.2}"));
        lines.push(format!(
            "{} ({}): busy {:.1} %, queue depth {:.2} on average and {} at most{}",
            device.model,
            device.holds.join(", "),
            100.0 * device.busy_share,
            device.mean_queue_depth,
            device.max_queue_depth,
            flash.unwrap_or_default()
        ));
    }
    lines.push(format!(
        "processor: busy {:.1} % of {}",
        100.0 * case.processor_share,
        seconds(case.seconds)
    ));
    for kill in &case.kills {
        lines.push(format!(
            "killed at {} with {} requests unanswered: recovered in {}, with {} clean and {} dirty \
             blocks",
            seconds(kill.at_seconds),
            kill.unanswered_requests,
            seconds(kill.recovery_seconds),
            kill.clean_blocks,
            kill.dirty_blocks
        ));
    }
    if case.skipped_requests > 0 {
        lines.push(format!(
            "{} requests lie beyond their volume or have no bytes, and were left out",
            case.skipped_requests
        ));
    }
    if let Some(verified) = &case.verified {
        let (sectors, wrong) = (verified.sectors, verified.violations);
        lines.push(format!("verified: {sectors} sectors were read back, {wrong} of them wrong"));
        lines.extend(verified.examples.iter().map(|example| format!("  {example}")));
    }
    lines
}

/// Rows under each other: text on the left, numbers on the right.
fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]], texts: &[usize]) -> Vec<String> {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let cell = |(column, text): (usize, &String)| match texts.contains(&column) {
        true => format!("{text:<width$}", width = widths[column]),
        false => format!("{text:>width$}", width = widths[column]),
    };
    let line = |row: &[String; COLUMNS]| row.iter().enumerate().map(cell).collect::<Vec<_>>();
    rows.iter().map(|row| line(row).join("  ").trim_end().to_owned()).collect()
}

fn time(us: f64) -> String {
    Nanos((us * 1e3).round() as u64).to_string()
}

fn seconds(seconds: f64) -> String {
    Nanos((seconds * 1e9).round() as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_under_each_other_on_the_right() {
        let rows = [["tenant", "count"], ["a", "7"], ["long name", "123456"]];
        let rows = rows.map(|row| row.map(str::to_owned));
        let expected = ["tenant      count", "a               7", "long name  123456"];
        assert_eq!(aligned(&rows, &[0]), expected);
        assert_eq!((time(1.5), seconds(0.25)), ("1.5us".to_owned(), "250ms".to_owned()));
    }
}
