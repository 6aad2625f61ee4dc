//! Keys of every kind, declared and read.
//!
//! For: the words of refusals, values that read back as themselves. Must never know: real keys.

use super::*;
use crate::{Bytes, Nanos, Size, choices, declare};

choices! {
    /// Two words for the tests.
    pub enum Colour {
        /// One.
        Red = "red",
        /// Another.
        Blue = "blue",
    }
}

declare! {
    /// Keys of every kind, for the tests.
    pub struct Sample {
        "shape" {
            /// number of corners
            corners: u32 = 3, "corners", 3 ..= 8; "made up";
            /// size of the sheet
            sheet: Bytes = Bytes(8192), "bytes", 512 ..= 65_536; "made up";
            /// time to cut
            cut: Nanos = Nanos(1_500), "time", 0 ..= 1_000_000; "made up"; applies "with a knife";
            /// what it looks like
            colour: Colour = Colour::Red, "-"; "made up";
        }
        "rest" {
            /// where it goes round
            r#loop: bool = false, "";
            /// part that is thrown away
            waste: Percent = Percent(0.07), "share", 0.01 ..= 0.5;
            /// its name, if it has one
            name: Option<String> = None, "text";
            /// what cuts it
            knife: Scheme = Scheme::named("plain"), "scheme";
            /// what it
            /// is cut from
            stock: Option<Size> = None, "size";
            /// places of holes
            holes: Vec<u32> = Vec::new(), "corners";
        }
    }
}

declare! {
    /// Keys without groups.
    pub struct Flat {
        /// share of something
        share: f64 = 0.1, "ratio", 0.0 ..= 1.0;
        /// number of levels
        levels: u32 = 64, "levels", 1 ..= 256; shares "table";
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn refusal(key: &str, value: Value) -> String {
    Sample::default().set(key, &value).unwrap_err().to_string()
}

#[test]
fn values_out_of_range_and_of_another_kind_are_refused_in_words() {
    let expected = "`corners`: found `2`, expected a whole number from 3 to 8 (corners)";
    assert_eq!(refusal("corners", Value::Int(2)), expected);
    let expected = "`sheet`: found `1KiB?`, expected a number with a unit: B, KiB, MiB, GiB, TiB, \
                    kB, MB, GB or TB (as in `16MiB`)";
    assert_eq!(refusal("sheet", text("1KiB?")), expected);
    let expected = "`cut`: found `2ms`, expected a number with a unit (`75us`) from 0s to 1ms";
    assert_eq!(refusal("cut", text("2ms")), expected);
    let expected = "`colour`: found `blu`, expected one of red, blue; nearest is `blue`";
    assert_eq!(refusal("colour", text("blu")), expected);
    let expected = "`waste`: found `90%`, expected a percentage such as `7%` from 1% to 50%";
    assert_eq!(refusal("waste", text("90%")), expected);
    assert!(refusal("corner", Value::Int(4)).contains("nearest is `corners`"));
    assert!(refusal("loop", Value::Int(1)).ends_with("expected true or false"));
    assert!(refusal("holes", Value::Int(1)).contains("a list of which each is a whole number"));
    let holes = Value::List(vec![Value::Int(1), text("x")]);
    let expected = "`holes`: found `x`, expected a list of which each is a whole number";
    assert_eq!(refusal("holes", holes), expected);
    assert!(refusal("name", Value::Int(1)).ends_with("found `1`, expected text in quotes"));
}

#[test]
fn values_read_back_as_themselves() {
    let pairs = [
        ("corners", Value::Int(5)),
        ("sheet", text("8640B")),
        ("cut", text("21814ns")),
        ("colour", text("blue")),
        ("loop", Value::Bool(true)),
        ("waste", text("12.5%")),
        ("name", text("a")),
        ("stock", text("10%wss")),
        ("holes", Value::List(vec![Value::Int(1), Value::Int(2)])),
        ("knife.d", Value::Int(9)),
    ];
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value));
    let sample = Sample::from_pairs(&pairs).unwrap();
    assert_eq!((sample.corners, sample.r#loop, sample.waste), (5, true, Percent(0.125)));
    assert_eq!(sample.knife.pairs, [("d".to_owned(), Value::Int(9))]);
    let values = sample.values();
    let again = values.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    assert_eq!(Sample::from_pairs(&again.collect::<Vec<_>>()), Ok(sample));
}

#[test]
fn texts_of_options_are_read_by_the_kind_of_their_key() {
    let mut sample = Sample::default();
    for (key, text) in [("corners", "4"), ("name", "4"), ("loop", "true"), ("sheet", "4KiB")] {
        sample.set_text(key, text).unwrap();
    }
    assert_eq!((sample.corners, sample.name.as_deref(), sample.r#loop), (4, Some("4"), true));
    assert_eq!((sample.sheet, Sample::keys()[3].default_text()), (Bytes(4096), "\"red\"".into()));
    let refused = sample.set_text("corners", "9").unwrap_err();
    assert_eq!((refused.found.as_str(), refused.key.as_str()), ("`9`", "corners"));
    assert_eq!(text("red").plain(), "red");
}

#[test]
fn fields_set_by_hand_are_checked_like_keys() {
    assert_eq!(Sample::default().check_ranges(), Ok(()));
    let refused = Sample { corners: 9, ..Sample::default() }.check_ranges().unwrap_err();
    assert_eq!((refused.found.as_str(), refused.key.as_str()), ("`9`", "corners"));
    assert!(Flat { share: f64::NAN, levels: 64 }.check_ranges().is_err());
}

#[test]
fn a_scheme_is_a_name_or_a_table() {
    let table = Value::Table(vec![
        ("name".to_owned(), text("saw")),
        ("teeth".to_owned(), Value::Float(0.5)),
    ]);
    assert_eq!(table.to_string(), "{ name = \"saw\", teeth = 0.5 }");
    let mut sample = Sample::default();
    sample.set("knife", &table).unwrap();
    assert_eq!(sample.knife.value(), Some(table));
    assert!(refusal("knife", Value::Table(Vec::new())).ends_with("expected a table with `name`"));
    assert!(refusal("knife", Value::Int(1)).contains("a name, or a table with `name`"));
    assert!(sample.set("corners.x", &Value::Int(1)).is_err(), "a number has no parts");
}

#[test]
fn keys_say_what_a_user_can_know() {
    let keys = Sample::keys();
    assert_eq!(keys.len(), 10);
    let cut = &keys[2];
    assert_eq!((cut.name, cut.group, cut.doc), ("cut", "shape", "time to cut"));
    assert_eq!((cut.accepted.as_str(), cut.applies), ("0s..=1ms", "with a knife"));
    assert_eq!(cut.default_text(), "\"1.5us\"");
    assert_eq!((keys[4].name, keys[4].source, keys[6].default.clone()), ("loop", "", None));
    assert_eq!(keys[8].doc, "what it is cut from");
    assert_eq!(keys[0].extremes(), [Value::Int(3), Value::Int(8)]);
    assert_eq!(keys[3].extremes(), [text("red"), text("blue")]);
    assert_eq!(Flat::keys()[0].extremes(), [Value::Float(0.0), Value::Float(1.0)]);
    assert_eq!(Flat::keys()[1].default_number(), 64.0);
    assert!(NoSettings::keys().is_empty());
}

#[test]
fn keys_that_differ_say_what_can_be_shared() {
    let (flat, deep) = (Flat::default(), Flat { levels: 8, ..Flat::default() });
    assert_eq!(flat.differences(&flat), [""; 0]);
    assert_eq!(flat.differences(&deep), ["table"]);
    assert_eq!(deep.differences(&Flat { share: 0.2, ..flat }), ["", "table"]);
}

#[test]
fn absent_keys_keep_their_defaults() {
    let flat = Flat::from_pairs(&[("levels".into(), Value::Int(8))]);
    assert_eq!(flat, Ok(Flat { share: 0.1, levels: 8 }));
    let error = NoSettings::default().set("x", &Value::Int(1)).unwrap_err().to_string();
    assert_eq!(error, "`x`: found an unknown key, expected no settings here");
}
