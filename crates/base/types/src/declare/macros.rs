/// Declares a struct of keys. Each key is its sentence, in as many lines as it takes, then `name:
/// type = default, "unit"`. A range follows as `, low ..= high`; the key ends with `;`. Optional
/// parts follow: its source (`"paper, section";`), a need of the file (`needs "devices";`), when it
/// has a meaning (`applies "in a closed loop";`), and what two cases that differ in it can share
/// (`shares "recording";`). Keys may stand under the names of groups.
/// Bounds of sizes are in bytes, those of times in nanoseconds, those of percentages ratios. The
/// struct gets `Default` and [`Declared`](crate::declare::Declared).
#[macro_export]
macro_rules! declare {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $group:literal {
                    $(
                        $(#[doc = $doc:literal])+
                        $field:ident : $kind:ty = $default:expr, $unit:literal
                            $(, $low:literal ..= $high:literal)? ;
                            $($source:literal ;)?
                            $(needs $needs:literal ;)?
                            $(applies $applies:literal ;)?
                            $(shares $shares:literal ;)?
                    )*
                }
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $( $(#[doc = $doc])+ pub $field: $kind, )* )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $( $field: $default, )* )* }
            }
        }

        impl $crate::declare::Declared for $name {
            fn keys() -> Vec<$crate::declare::Key> {
                #[allow(unused_variables)]
                let defaults = Self::default();
                vec![ $( $( {
                    let range = $crate::declare!(@range $($low, $high)?);
                    $crate::declare::Key {
                        name: $crate::declare::key_name(stringify!($field)),
                        group: $group,
                        doc: concat!($($doc),+).trim_ascii(),
                        unit: $unit,
                        kind: <$kind as $crate::declare::ValueKind>::KIND,
                        default: $crate::declare::ValueKind::value(&defaults.$field),
                        accepted: $crate::declare::accepted::<$kind>(range),
                        range,
                        words: <$kind as $crate::declare::ValueKind>::words(),
                        source: concat!($($source)?),
                        needs: concat!($($needs)?),
                        applies: concat!($($applies)?),
                    }
                }, )* )* ]
            }

            #[allow(unused_variables)]
            fn set(
                &mut self,
                key: &str,
                value: &$crate::Value,
            ) -> Result<(), $crate::SettingError> {
                let head = key.split_once('.').map_or(key, |(head, _)| head);
                $( $( if head == $crate::declare::key_name(stringify!($field)) {
                    let range = $crate::declare!(@range $($low, $high)?);
                    return $crate::declare::assign(&mut self.$field, key, value, $unit, range);
                } )* )*
                let known: Vec<&str> =
                    vec![$( $( $crate::declare::key_name(stringify!($field)), )* )*];
                Err($crate::declare::unknown_key(key, known))
            }

            fn values(&self) -> Vec<(&'static str, Option<$crate::Value>)> {
                vec![ $( $( (
                    $crate::declare::key_name(stringify!($field)),
                    $crate::declare::ValueKind::value(&self.$field),
                ), )* )* ]
            }

            #[allow(unused_variables, unused_mut)]
            fn differences(&self, other: &Self) -> Vec<&'static str> {
                let mut shares = Vec::new();
                $( $( if self.$field != other.$field {
                    shares.push(concat!($($shares)?));
                } )* )*
                shares
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( #[doc = $doc:literal] $($key:tt)* )?
        }
    ) => {
        $crate::declare! {
            $(#[$meta])*
            pub struct $name {
                $( "" { #[doc = $doc] $($key)* } )?
            }
        }
    };
    (@range) => { None };
    (@range $low:literal, $high:literal) => {
        Some((
            $crate::declare::literal(stringify!($low)),
            $crate::declare::literal(stringify!($high)),
        ))
    };
}

/// Declares an enumeration whose values are chosen by a word of a stack file. The default is named
/// where the key is declared.
#[macro_export]
macro_rules! choices {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$doc:meta])* $variant:ident = $word:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[$doc])* $variant, )*
        }

        impl $name {
            /// All values, in the order of tables.
            pub const ALL: &[$name] = &[$( $name::$variant, )*];

            /// The word in stack files.
            pub fn word(self) -> &'static str {
                match self {
                    $( $name::$variant => $word, )*
                }
            }
        }

        impl $crate::declare::ValueKind for $name {
            const KIND: &'static str = $crate::declare::WORD;

            fn read(value: &$crate::Value) -> Result<$name, $crate::declare::Mismatch> {
                let word = value.as_text();
                let found = $name::ALL.iter().copied().find(|choice| Some(choice.word()) == word);
                found.ok_or($crate::declare::Mismatch::Kind)
            }

            fn value(&self) -> Option<$crate::Value> {
                Some($crate::Value::Text(self.word().to_owned()))
            }

            fn words() -> Vec<&'static str> {
                $name::ALL.iter().map(|choice| choice.word()).collect()
            }
        }
    };
}
