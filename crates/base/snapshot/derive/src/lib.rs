//! The derives of `cachewright-snapshot`.
//!
//! Fields are written in the order of their declaration, without names; an enum begins with the
//! number of its variant. `#[snapshot(settings)]` leaves a field out: it is as it was made from the
//! settings. `#[snapshot(each)]` restores the elements of a list, or what an `Option` has, where
//! they are: how many there are follows from the settings. A type parameter must be state for
//! state, and a value for a value.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{ToTokens, format_ident, quote};
use syn::{Data, DeriveInput, Error, Field, Fields, GenericParam, Ident, parse_macro_input};

/// State that is restored in place: all fields but settings. Of an enum the variant is as it was
/// made, and its fields are restored.
#[proc_macro_derive(Snapshot, attributes(snapshot))]
pub fn snapshot(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    in_place(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// A value that a snapshot has as a whole, which has no settings.
#[proc_macro_derive(SnapshotValue)]
pub fn snapshot_value(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    value(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// The variants with their fields; a struct has one.
fn variants(input: &DeriveInput) -> Result<Vec<(Tokens, &Fields)>, Error> {
    match &input.data {
        Data::Struct(data) => Ok(vec![(quote!(Self), &data.fields)]),
        Data::Enum(data) => {
            let named = |variant: &'_ syn::Variant| {
                let ident = variant.ident.clone();
                quote!(Self::#ident)
            };
            Ok(data.variants.iter().map(|variant| (named(variant), &variant.fields)).collect())
        }
        Data::Union(_) => Err(Error::new_spanned(&input.ident, "a union has no snapshot")),
    }
}

/// What becomes of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    State,
    Settings,
    Each,
}

fn kind(field: &Field) -> Result<FieldKind, Error> {
    let mut kind = FieldKind::State;
    for attribute in field.attrs.iter().filter(|found| found.path().is_ident("snapshot")) {
        attribute.parse_nested_meta(|meta| {
            kind = match &meta.path {
                path if path.is_ident("settings") => FieldKind::Settings,
                path if path.is_ident("each") => FieldKind::Each,
                _ => return Err(meta.error("expected `settings` or `each`")),
            };
            Ok(())
        })?;
    }
    Ok(kind)
}

/// The name under which a field is bound in a pattern, and the member that it is.
fn bound(fields: &Fields) -> Vec<(Ident, Tokens)> {
    let member = |(place, field): (usize, &Field)| {
        let member = match &field.ident {
            Some(ident) => ident.to_token_stream(),
            None => syn::Index::from(place).to_token_stream(),
        };
        (format_ident!("field{place}"), member)
    };
    fields.iter().enumerate().map(member).collect()
}

/// The implementation of a trait, where type parameters have another.
fn header(input: &DeriveInput, of: &Tokens, each: &Tokens, body: &Tokens) -> Tokens {
    let name = &input.ident;
    let (bounds, arguments, wheres) = input.generics.split_for_impl();
    let given = wheres.map(|found| &found.predicates);
    let parameters = input.generics.params.iter().filter_map(|parameter| match parameter {
        GenericParam::Type(found) => Some(&found.ident),
        _ => None,
    });
    quote! {
        #[automatically_derived]
        impl #bounds #of for #name #arguments
        where #(#parameters: #each,)* #given
        {
            #body
        }
    }
}

fn save(input: &DeriveInput) -> Result<Tokens, Error> {
    let mut arms = Vec::new();
    let is_enum = matches!(input.data, Data::Enum(_));
    for (number, (path, fields)) in variants(input)?.into_iter().enumerate() {
        let number = number as u32;
        let (mut patterns, mut saves) = (Vec::new(), Vec::new());
        for ((name, member), field) in bound(fields).into_iter().zip(fields) {
            let (pattern, save) = match kind(field)? {
                FieldKind::Settings => (quote!(_), quote!()),
                FieldKind::State => {
                    (quote!(#name), quote!(::cachewright_snapshot::Snapshot::save(#name, out);))
                }
                FieldKind::Each => (
                    quote!(#name),
                    quote! {
                        out.length(#name.iter().count());
                        for element in #name.iter() {
                            ::cachewright_snapshot::Snapshot::save(element, out);
                        }
                    },
                ),
            };
            patterns.push(quote!(#member: #pattern));
            saves.push(save);
        }
        let tag = is_enum.then(|| quote!(out.tag(#number);));
        arms.push(quote!(#path { #(#patterns),* } => { #tag #(#saves)* }));
    }
    Ok(quote! {
        #[allow(unused_variables)]
        #[inline]
        fn save(&self, out: &mut ::cachewright_snapshot::SnapshotWriter<'_>) {
            match self { #(#arms)* }
        }
    })
}

fn in_place(input: &DeriveInput) -> Result<Tokens, Error> {
    let mut arms = Vec::new();
    let is_enum = matches!(input.data, Data::Enum(_));
    let of = input.ident.to_string();
    for (number, (path, fields)) in variants(input)?.into_iter().enumerate() {
        let number = number as u32;
        let (mut patterns, mut restores) = (Vec::new(), Vec::new());
        for ((name, member), field) in bound(fields).into_iter().zip(fields) {
            let (pattern, restore) = match kind(field)? {
                FieldKind::Settings => (quote!(_), quote!()),
                FieldKind::State => (
                    quote!(#name),
                    quote!(::cachewright_snapshot::Snapshot::restore(#name, from)?;),
                ),
                FieldKind::Each => {
                    let what = format!("{member} of {of}");
                    let elements = quote! {
                        from.expect_length(#name.iter().count(), #what)?;
                        for element in #name.iter_mut() {
                            ::cachewright_snapshot::Snapshot::restore(element, from)?;
                        }
                    };
                    (quote!(#name), elements)
                }
            };
            patterns.push(quote!(#member: #pattern));
            restores.push(restore);
        }
        let tag = is_enum.then(|| quote!(from.expect_tag(#number, #of)?;));
        arms.push(quote!(#path { #(#patterns),* } => { #tag #(#restores)* }));
    }
    let save = save(input)?;
    let body = quote! {
        #save

        #[allow(unused_variables)]
        fn restore(
            &mut self,
            from: &mut ::cachewright_snapshot::SnapshotReader<'_>,
        ) -> ::std::result::Result<(), ::cachewright_snapshot::SnapshotError> {
            match self { #(#arms)* }
            ::std::result::Result::Ok(())
        }
    };
    let of = quote!(::cachewright_snapshot::Snapshot);
    Ok(header(input, &of, &of, &body))
}

fn value(input: &DeriveInput) -> Result<Tokens, Error> {
    let is_enum = matches!(input.data, Data::Enum(_));
    let name = input.ident.to_string();
    let mut loads = Vec::new();
    for (path, fields) in variants(input)? {
        let mut members = Vec::new();
        for ((_, member), field) in bound(fields).into_iter().zip(fields) {
            let kind = &field.ty;
            let load = quote!(<#kind as ::cachewright_snapshot::SnapshotValue>::load(from)?);
            members.push(quote!(#member: #load));
        }
        loads.push(quote!(#path { #(#members),* }));
    }
    let load = match is_enum {
        true => {
            let numbers = 0..loads.len() as u32;
            quote! {
                match from.tag()? {
                    #(#numbers => #loads,)*
                    found => return ::std::result::Result::Err(
                        ::cachewright_snapshot::SnapshotError::variant(#name, found),
                    ),
                }
            }
        }
        false => loads.pop().unwrap_or_default(),
    };
    let save = save(input)?;
    let state = quote! {
        #save

        #[inline]
        fn restore(
            &mut self,
            from: &mut ::cachewright_snapshot::SnapshotReader<'_>,
        ) -> ::std::result::Result<(), ::cachewright_snapshot::SnapshotError> {
            *self = ::cachewright_snapshot::SnapshotValue::load(from)?;
            ::std::result::Result::Ok(())
        }
    };
    let load = quote! {
        #[allow(unused_variables)]
        #[inline]
        fn load(
            from: &mut ::cachewright_snapshot::SnapshotReader<'_>,
        ) -> ::std::result::Result<Self, ::cachewright_snapshot::SnapshotError> {
            ::std::result::Result::Ok(#load)
        }
    };
    let of = quote!(::cachewright_snapshot::SnapshotValue);
    let state = header(input, &quote!(::cachewright_snapshot::Snapshot), &of, &state);
    let load = header(input, &of, &of, &load);
    Ok(quote!(#state #load))
}
