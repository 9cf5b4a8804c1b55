//! The macro that makes a struct, its list of settings and its reader from one list.

/// A section of the configuration: a struct of settings, `SETTINGS` and `read`.
macro_rules! section {
    (
        $(#[$doc:meta])*
        $section:ident {
            $($field:ident $([$key:literal])?: $type:ty = $default:tt, $rule:expr, $help:literal;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $section {
            $(pub(crate) $field: section!(@type $type, $default),)*
        }

        impl $section {
            /// The settings of this section, in the order of its fields.
            pub(crate) const SETTINGS: &[crate::config::setting::Setting] = &[
                $(crate::config::setting::Setting {
                    key: section!(@key $field $($key)?),
                    default: section!(@default $default),
                    help: $help,
                },)*
            ];

            /// Read all settings of this section. Faults are the reader's.
            pub(crate) fn read(reader: &mut crate::config::reader::Reader<'_>) -> Self {
                let mut settings = Self::SETTINGS.iter();
                Self {
                    $($field: section!(@read reader, settings, $rule, $default),)*
                }
            }
        }
    };
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    (@default none) => { None };
    (@default $default:literal) => { Some($default) };
    (@type $type:ty, none) => { Option<$type> };
    (@type $type:ty, $default:literal) => { $type };
    (@read $reader:ident, $settings:ident, $rule:expr, none) => {
        $settings.next().and_then(|setting| $reader.optional(setting, &$rule))
    };
    (@read $reader:ident, $settings:ident, $rule:expr, $default:literal) => {
        $reader.value($settings.next(), &$rule)
    };
}

pub(crate) use section;
