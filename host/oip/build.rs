//! The types and the service of `proto/inference.proto`. The messages serialise to the JSON that
//! the protocol has over HTTP, so that metadata, configuration and statistics are made once for
//! both.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let proto = "proto/inference.proto";
    println!("cargo::rerun-if-changed={proto}");
    let descriptors = protox::compile([proto], ["proto"])?;
    let absent = "#[serde(skip_serializing_if = \"Option::is_none\")]";
    let mut builder = tonic_prost_build::configure()
        .build_client(false)
        .codec_path("crate::grpc::codec::BoundedCodec")
        .bytes(".")
        .btree_map(".inference.ModelStatistics")
        .btree_map(".inference.ModelDynamicBatching")
        .btree_map(".inference.ModelMetadataResponse")
        .field_attribute("ModelConfig.dynamic_batching", absent)
        .field_attribute(
            "ModelMetadataResponse.properties",
            "#[serde(skip_serializing_if = \"std::collections::BTreeMap::is_empty\")]",
        );
    for (field, name) in [
        ("ModelInput.data_type", "data_type"),
        ("ModelInput.format", "format"),
        ("ModelOutput.data_type", "data_type"),
        ("ModelInstanceGroup.kind", "instance_kind"),
        ("ModelQueuePolicy.timeout_action", "timeout_action"),
    ] {
        let attribute = format!("#[serde(serialize_with = \"crate::grpc::names::{name}\")]");
        builder = builder.field_attribute(field, attribute);
    }
    for message in [
        "ServerMetadataResponse",
        "ModelMetadataResponse",
        "ModelStatisticsResponse",
        "StatisticDuration",
        "InferStatistics",
        "InferResponseStatistics",
        "InferBatchStatistics",
        "MemoryUsage",
        "ModelStatistics",
        "RepositoryIndexResponse",
        "ModelInput",
        "ModelOutput",
        "ModelInstanceGroup",
        "ModelQueuePolicy",
        "ModelDynamicBatching",
        "ModelTransactionPolicy",
        "ModelResponseCache",
        "ModelConfig",
    ] {
        let message = format!(".inference.{message}");
        builder = builder.message_attribute(message, "#[derive(serde::Serialize)]");
    }
    builder.compile_fds(descriptors)?;
    Ok(())
}
