//! Published folders, held to what transformers makes of them; see `golden/make_qwen.py`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::Tensor;
use onpolicy::Params;
use safetensors::SafeTensors;
use serde_json::{Value, json};
use token_policy::{
    Checkpoint, Codec, Decoder, DecoderConfig, Decoding, Generator, Lora, Role, Stored, Tokenizer, Tokens,
    qwen3_prompt, qwen25_prompt,
};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/qwen").join(name)
}

fn golden() -> Value {
    serde_json::from_slice(&fs::read(folder("golden.json")).unwrap()).unwrap()
}

fn ids(v: &Value) -> Vec<u32> {
    v.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect()
}

fn sequences(v: &Value) -> Tokens {
    Tokens::new(v.as_array().unwrap().iter().map(ids))
}

fn floats(v: &Value) -> Vec<f32> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

const MODELS: [&str; 3] = ["qwen2", "qwen3", "qwen3-bf16"];

#[test]
fn logits_are_those_of_transformers() {
    let golden = golden();
    let (prompts, completions) = (sequences(&golden["prompts"]), sequences(&golden["completions"]));
    for name in MODELS {
        let read = Checkpoint::read(&folder(name)).unwrap();
        let ours = read.decoder.logits(&prompts, &completions).unwrap().to_vec2::<f32>().unwrap().concat();
        let rows = golden["models"][name]["logits"].as_array().unwrap();
        let theirs: Vec<f32> = rows.iter().flat_map(floats).collect();
        assert_eq!(ours.len(), theirs.len());
        let worst = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("{name}: largest difference of logits {worst:.2e}");
        assert!(worst <= 1e-5, "{name}: {worst}");
        assert!(theirs.iter().any(|l| l.abs() > 1.0), "logits that say nothing");
    }
}

/// Largest difference of a part's gradient from the golden one, relative to its norm. `stored`: a part's name there.
fn worst_gradient(name: &str, params: &Params, ours: &[f32], stored: impl Fn(&str) -> String) -> f64 {
    let bytes = fs::read(folder(&format!("{name}.grad.safetensors"))).unwrap();
    let theirs = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(theirs.len(), params.parts().len());
    let mut worst = 0f64;
    for part in params.parts() {
        let view = theirs.tensor(&stored(&part.name)).unwrap();
        assert_eq!(view.shape(), part.shape);
        let theirs = view.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
        let (mut off, mut norm) = (0.0, 0.0);
        for (a, b) in ours[part.range()].iter().zip(theirs) {
            off += f64::from(a - b).powi(2);
            norm += f64::from(b).powi(2);
        }
        // a bias of the keys shifts all scores alike: no gradient but rounding
        if norm.sqrt() < 1e-4 {
            assert!(off.sqrt() < 1e-4, "{name}, {}", part.name);
            continue;
        }
        worst = worst.max((off / norm).sqrt());
        assert!((off / norm).sqrt() <= 1e-5, "{name}, {}: {off} of {norm}", part.name);
    }
    worst
}

#[test]
fn gradients_are_those_of_autograd_in_every_tensor() {
    let golden = golden();
    let (prompts, completions) = (sequences(&golden["prompts"]), sequences(&golden["completions"]));
    for name in MODELS {
        let decoder = Checkpoint::read(&folder(name)).unwrap().decoder;
        let model = &golden["models"][name];
        let weights = floats(&model["weights"]);
        let weights = Tensor::new(weights.as_slice(), &candle_core::Device::Cpu).unwrap();
        let scores = decoder.log_prob(&prompts, &completions, 1.0, decoder.config().vocab).unwrap();
        let loss = (scores * weights).unwrap().sum_all().unwrap();
        let want = model["loss"].as_f64().unwrap();
        assert!((f64::from(loss.to_scalar::<f32>().unwrap()) - want).abs() < 1e-4, "{name}");
        let grads = loss.backward().unwrap();
        let ours = grads.get(decoder.params().var().as_tensor()).unwrap().to_vec1::<f32>().unwrap();
        let worst = worst_gradient(name, decoder.params(), &ours, str::to_owned);
        println!("{name}: largest relative difference of gradients {worst:.2e}");
    }
}

#[test]
fn adapters_of_peft_have_its_sums_and_gradients() {
    let golden = golden();
    let (prompts, completions) = (sequences(&golden["prompts"]), sequences(&golden["completions"]));
    let base = Checkpoint::read(&folder("qwen3")).unwrap().decoder;
    let lora = Lora::read(base.clone(), &folder("lora")).unwrap();
    let weights = lora.weights().unwrap();
    let model = &golden["models"]["lora"];
    let ours = base.logits_with(&weights, &prompts, &completions).unwrap().to_vec2::<f32>().unwrap().concat();
    let theirs: Vec<f32> = model["logits"].as_array().unwrap().iter().flat_map(floats).collect();
    let worst = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("lora: largest difference of logits {worst:.2e}");
    assert!(ours.len() == theirs.len() && worst <= 1e-5, "{worst}");
    let scores = base.log_prob_with(&weights, &prompts, &completions, 1.0, base.config().vocab).unwrap();
    let factors = Tensor::new(floats(&model["weights"]).as_slice(), &candle_core::Device::Cpu).unwrap();
    let grads = (scores * factors).unwrap().sum_all().unwrap().backward().unwrap();
    let ours = grads.get(lora.params().var().as_tensor()).unwrap().to_vec1::<f32>().unwrap();
    let worst = worst_gradient("lora", lora.params(), &ours, |name| format!("base_model.model.{name}"));
    println!("lora: largest relative difference of gradients {worst:.2e}");
    // for make_qwen.py --check
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("qwen-written").join("lora");
    lora.write(&dir).unwrap();
    expect(&dir, |p, c| base.logits_with(&weights, p, c).unwrap());
}

#[test]
fn prompts_of_conversations_are_those_of_the_published_templates() {
    let golden = golden();
    let chats = golden["chats"].as_array().unwrap();
    for chat in chats {
        let messages: Vec<(Role, &str)> = chat["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| {
                let role = match m[0].as_str().unwrap() {
                    "system" => Role::System,
                    "user" => Role::User,
                    _ => Role::Assistant,
                };
                (role, m[1].as_str().unwrap())
            })
            .collect();
        let ours = match chat["family"].as_str().unwrap() {
            "qwen3" => qwen3_prompt(&messages, chat["thinking"].as_bool().unwrap()),
            _ => qwen25_prompt(&messages),
        };
        assert_eq!(ours, chat["text"].as_str().unwrap(), "{chat}");
    }
    assert_eq!(chats.len(), 48);
}

#[test]
fn cached_decoding_continues_as_transformers_does() {
    let golden = golden();
    for name in MODELS {
        let decoder = Checkpoint::read(&folder(name)).unwrap().decoder;
        for (i, prompt) in sequences(&golden["prompts"]).iter().enumerate() {
            let mut decoding = Decoding::new(&decoder, 1, prompt.len() + 8).unwrap();
            let mut logits = vec![0.0f32; decoder.config().vocab];
            decoding.prefill(0, prompt, &mut logits).unwrap();
            let mut written = Vec::new();
            for _ in 0..8 {
                let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap() as u32;
                written.push(best);
                if written.len() < 8 {
                    decoding.step(&[0], &[best], &mut logits).unwrap();
                }
            }
            assert_eq!(written, ids(&golden["models"][name]["greedy"][i]), "{name}, prompt {i}");
        }
    }
}

#[test]
fn texts_have_the_ids_of_the_tokenizers_library() {
    let golden = golden();
    let golden = &golden["tokenizer"];
    let tokenizer = Tokenizer::read(&folder("tokenizer")).unwrap();
    assert_eq!(tokenizer.size() as u64, golden["size"].as_u64().unwrap());
    assert_eq!(tokenizer.ends(), ids(&golden["ends"]));
    assert_eq!(tokenizer.id("<|im_end|>"), Some(tokenizer.ends()[0]));
    for case in golden["texts"].as_array().unwrap() {
        let (text, want) = (case["text"].as_str().unwrap(), ids(&case["ids"]));
        assert_eq!(tokenizer.encode(text).unwrap(), want, "{text:?}");
        assert_eq!(tokenizer.decode(&want), case["decoded"].as_str().unwrap(), "{text:?}");
    }
    let size = tokenizer.size();
    assert_eq!((tokenizer.usable_vocab(size).unwrap(), tokenizer.usable_vocab(size + 99).unwrap()), (size, size));
    let error = tokenizer.usable_vocab(61).unwrap_err().to_string();
    assert!(error.contains("61 rows"), "{error}");
    let digits = tokenizer.encode("2026").unwrap();
    assert_eq!(digits.len(), 4, "every digit is a token");
}

fn bits(decoder: &Decoder) -> Vec<u32> {
    decoder.params().to_vec().unwrap().iter().map(|x| x.to_bits()).collect()
}

/// Writes sequences and logits next to what gave them.
fn expect(dir: &Path, logits: impl Fn(&Tokens, &Tokens) -> Tensor) {
    let (prompts, completions) = ([&[1u32, 2, 3][..], &[4]], [&[5u32, 6, 7, 0][..], &[8, 9]]);
    let logits = logits(&Tokens::new(prompts), &Tokens::new(completions)).to_vec2::<f32>().unwrap();
    let expected = json!({ "prompts": prompts, "completions": completions, "logits": logits });
    fs::write(dir.join("expected.json"), expected.to_string()).unwrap();
}

fn from_scratch() -> Vec<(&'static str, DecoderConfig)> {
    let plain = DecoderConfig::new(19, 16, 2, 4, 2, 24);
    vec![
        ("new-qwen2", DecoderConfig { qkv_bias: true, rope_theta: 1e6, ..plain.clone() }),
        ("new-qwen3", DecoderConfig { qk_norm: true, tied: false, head_dim: 6, ..plain.clone() }),
        ("new-llama-head", DecoderConfig { head_dim: 6, norm_eps: 1e-5, ..plain.clone() }),
        ("new-llama", plain),
    ]
}

#[test]
fn what_is_written_reads_back_with_equal_bits() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("qwen-written");
    let mut all: Vec<(&str, Checkpoint)> =
        MODELS.into_iter().map(|name| (name, Checkpoint::read(&folder(name)).unwrap())).collect();
    all.extend(from_scratch().into_iter().map(|(name, config)| {
        let decoder = Decoder::new(config, 5).unwrap();
        decoder.params().update(|p| p.iter_mut().for_each(|p| *p *= 4.0)).unwrap();
        (name, Checkpoint::new(decoder, vec![0, 7]))
    }));
    for (name, mut written) in all {
        written.tokenizer = Some(folder("tokenizer").join("tokenizer.json"));
        let dir = out.join(name);
        written.write(&dir).unwrap();
        let read = Checkpoint::read(&dir).unwrap();
        assert_eq!(read.decoder.config(), written.decoder.config(), "{name}");
        assert_eq!(bits(&read.decoder), bits(&written.decoder), "{name}");
        assert_eq!(read.ends, written.ends, "{name}");
        let copied = fs::read(read.tokenizer.unwrap()).unwrap();
        assert_eq!(copied, fs::read(written.tokenizer.unwrap()).unwrap());
        // keys that this crate does not know are still there
        for (key, value) in written.config.iter().filter(|(key, _)| *key != "dtype") {
            assert_eq!(read.config.get(key), Some(value), "{name}");
        }
        // for make_qwen.py --check
        expect(&dir, |p, c| read.decoder.logits(p, c).unwrap());
    }
}

#[test]
fn half_the_width_keeps_what_fits_in_it_and_is_named_in_the_configuration() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("qwen-written").join("qwen3-as-bf16");
    let narrow = Checkpoint::read(&folder("qwen3-bf16")).unwrap();
    narrow.write_as(&out, Stored::Bf16).unwrap();
    let read = Checkpoint::read(&out).unwrap();
    assert_eq!(bits(&read.decoder), bits(&narrow.decoder));
    assert_eq!(read.config["dtype"], json!("bfloat16"));
    let size = |dir: &Path| fs::metadata(dir.join("model.safetensors")).unwrap().len();
    assert!(size(&out) < 20_000, "{}", size(&out));
    expect(&out, |p, c| read.decoder.logits(p, c).unwrap());
    let wide = Checkpoint::read(&folder("qwen2")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    wide.write_as(dir.path(), Stored::Bf16).unwrap();
    let (a, b) = (wide.decoder.params().to_vec().unwrap(), Checkpoint::read(dir.path()).unwrap());
    for (a, b) in a.iter().zip(b.decoder.params().to_vec().unwrap()) {
        assert!((a - b).abs() <= a.abs() / 256.0, "{a} became {b}");
    }
}

/// A copy of a golden folder.
fn copy(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    dir
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Rewrites a file of tensors.
fn retensor(path: &Path, change: impl FnOnce(&mut HashMap<String, (Vec<usize>, Vec<f32>)>)) {
    let bytes = fs::read(path).unwrap();
    let mut all = HashMap::new();
    for (name, view) in SafeTensors::deserialize(&bytes).unwrap().iter() {
        let values = view.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        all.insert(name.to_owned(), (view.shape().to_vec(), values));
    }
    change(&mut all);
    let tensors: HashMap<String, Tensor> = all
        .into_iter()
        .map(|(name, (shape, v))| (name, Tensor::from_vec(v, shape, &candle_core::Device::Cpu).unwrap()))
        .collect();
    candle_core::safetensors::save(&tensors, path).unwrap();
}

/// The message of reading that folder, which must say all of this.
fn says(dir: &Path, parts: &[&str]) {
    let message = Checkpoint::read(dir).err().unwrap_or_else(|| panic!("read although: {parts:?}")).to_string();
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

#[test]
fn configurations_that_mean_something_else_are_refused_by_key() {
    for (key, value, supported) in [
        ("model_type", json!("gpt2"), "qwen2"),
        ("hidden_act", json!("gelu"), "silu"),
        ("use_sliding_window", json!(true), "false"),
        ("rope_scaling", json!({"rope_type": "yarn", "factor": 4.0}), "default"),
        ("rope_parameters", json!({"rope_type": "linear", "rope_theta": 1e6}), "default"),
        ("rope_scaling", json!({"type": "dynamic"}), "default"),
        ("quantization_config", json!({"bits": 4}), "bf16"),
        ("layer_types", json!(["full_attention", "sliding_attention"]), "full_attention"),
        ("hidden_size", json!("24"), "whole number"),
        ("vocab_size", Value::Null, "whole number"),
        ("rms_norm_eps", json!("small"), "a number"),
        ("tie_word_embeddings", json!(1), "true or false"),
        ("num_key_value_heads", json!(3), "divisor"),
    ] {
        let dir = copy("qwen2");
        edit(&dir.path().join("config.json"), |c| c[key] = value);
        let named = if key == "num_key_value_heads" { "kv_heads" } else { key };
        says(dir.path(), &["config.json", named, supported]);
    }
    let dir = copy("qwen3");
    edit(&dir.path().join("config.json"), |c| c["attention_bias"] = json!(true));
    says(dir.path(), &["attention_bias", "false"]);
    let dir = copy("qwen2");
    edit(&dir.path().join("generation_config.json"), |c| c["eos_token_id"] = json!(["x"]));
    says(dir.path(), &["generation_config.json", "eos_token_id", "list"]);
    edit(&dir.path().join("generation_config.json"), |c| c["eos_token_id"] = json!([0, 61]));
    says(dir.path(), &["61", "vocab_size", "eos_token_id"]);
}

#[test]
fn end_tokens_come_from_the_generation_settings_then_from_the_shape() {
    let ends = |name: &str| Checkpoint::read(&folder(name)).unwrap().ends;
    assert_eq!((ends("qwen2"), ends("qwen3")), (vec![0], vec![0, 60]));
    let dir = copy("qwen3");
    fs::remove_file(dir.path().join("generation_config.json")).unwrap();
    assert_eq!(Checkpoint::read(dir.path()).unwrap().ends, [0]);
    edit(&dir.path().join("config.json"), |c| c["eos_token_id"] = Value::Null);
    assert!(Checkpoint::read(dir.path()).unwrap().ends.is_empty());
    let error = Tokenizer::read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("eos_token_id"), "{error}");
}

#[test]
fn weights_that_do_not_fit_are_named_with_file_and_shapes() {
    let dir = copy("qwen2");
    let file = dir.path().join("model.safetensors");
    let name = "model.layers.1.mlp.up_proj.weight";
    let good = fs::read(&file).unwrap();
    retensor(&file, |t| t.get_mut(name).unwrap().0 = vec![24, 40]);
    says(dir.path(), &["model.safetensors", name, "[24, 40]", "[40, 24]"]);
    fs::write(&file, &good).unwrap();
    retensor(&file, |t| drop(t.remove(name)));
    says(dir.path(), &["lacks 1 tensors", name, "config.json"]);
    fs::write(&file, &good).unwrap();
    retensor(&file, |t| drop(t.insert("visual.weight".into(), (vec![1], vec![0.0]))));
    says(dir.path(), &["1 tensors too many", "visual.weight"]);
    fs::write(&file, &good).unwrap();
    // a tied model may repeat its embedding, not contradict it
    retensor(&file, |t| drop(t.insert("lm_head.weight".into(), t["model.embed_tokens.weight"].clone())));
    let kept = Checkpoint::read(dir.path()).unwrap();
    assert_eq!(bits(&kept.decoder), bits(&Checkpoint::read(&folder("qwen2")).unwrap().decoder));
    retensor(&file, |t| t.get_mut("lm_head.weight").unwrap().1[5] += 1.0);
    says(dir.path(), &["tie_word_embeddings", "lm_head.weight"]);
    fs::write(&file, &good).unwrap();
    edit(&dir.path().join("config.json"), |c| c["num_hidden_layers"] = json!(1_000_000));
    says(dir.path(), &["num_hidden_layers is 1000000"]);
    fs::remove_file(&file).unwrap();
    edit(&dir.path().join("config.json"), |c| c["num_hidden_layers"] = json!(2));
    says(dir.path(), &["neither model.safetensors nor model.safetensors.index.json"]);

    let integers = HashMap::from([(name.to_owned(), Tensor::new(&[1u32], &candle_core::Device::Cpu).unwrap())]);
    candle_core::safetensors::save(&integers, &file).unwrap();
    says(dir.path(), &["num_hidden_layers is 2", "1 tensors"]);
}

#[test]
fn an_index_stays_in_its_folder_and_names_what_is_missing() {
    let dir = copy("qwen3");
    let index = dir.path().join("model.safetensors.index.json");
    let text = fs::read(&index).unwrap();
    let whole: Value = serde_json::from_slice(&text).unwrap();
    let shard = whole["weight_map"]["lm_head.weight"].as_str().unwrap().to_owned();
    for outside in ["../model.safetensors", "sub/x.safetensors", "..", "/x.safetensors", "c:x", "a\\b", ""] {
        edit(&index, |i| i["weight_map"]["lm_head.weight"] = json!(outside));
        says(dir.path(), &["index.json", "own folder"]);
    }
    fs::write(&index, &text).unwrap();
    edit(&index, |i| i["weight_map"]["lm_head.weight"] = json!(3));
    says(dir.path(), &["index.json", "lm_head.weight"]);
    edit(&index, |i| i["weight_map"] = json!([]));
    says(dir.path(), &["index.json", "weight_map"]);
    fs::write(&index, &text).unwrap();
    fs::remove_file(dir.path().join(&shard)).unwrap();
    says(dir.path(), &[&shard, "not in the folder"]);
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    for (name, file) in [
        ("qwen2", "model.safetensors"),
        ("qwen3", "model.safetensors.index.json"),
        ("qwen3", "config.json"),
        ("qwen3-bf16", "model.safetensors"),
    ] {
        let dir = copy(name);
        let path = dir.path().join(file);
        let whole = fs::read(&path).unwrap();
        // the last byte of a text may be a line break
        for cut in (0..40).chain((40..whole.len() - 1).step_by(97)).chain([whole.len() - 2]) {
            fs::write(&path, &whole[..cut]).unwrap();
            says(dir.path(), &[file]);
        }
    }
    let dir = copy("tokenizer");
    let path = dir.path().join("tokenizer.json");
    let whole = fs::read(&path).unwrap();
    for cut in (0..whole.len() - 1).step_by(971) {
        fs::write(&path, &whole[..cut]).unwrap();
        assert!(Tokenizer::read(dir.path()).unwrap_err().to_string().contains("tokenizer.json"));
    }
}

/// A safetensors file of that header and `data` bytes.
fn raw(header: &str, data: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.resize(file.len() + data, 0);
    file
}

#[test]
fn headers_that_lie_about_the_file_are_errors() {
    let dir = copy("qwen2");
    let path = dir.path().join("model.safetensors");
    let one = |dtype: &str, shape: &str, from: &str, to: &str| {
        format!(r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{from},{to}]}}}}"#)
    };
    for bytes in [
        raw(&one("F32", "[2]", "0", "8"), 12),
        raw(&one("F32", "[2]", "0", "12"), 12),
        raw(&one("F32", "[2]", "4", "12"), 12),
        raw(&one("F32", "[2]", "8", "0"), 8),
        raw(&one("F32", "[18446744073709551615,16]", "0", "8"), 8),
        raw(&one("F32", "[2305843009213693952]", "0", "9223372036854775808"), 8),
        raw(&one("F32", "[-1]", "0", "8"), 8),
        raw(&one("F31", "[2]", "0", "8"), 8),
        raw("[]", 0),
        raw("{", 0),
        u64::MAX.to_le_bytes().to_vec(),
        (1u64 << 40).to_le_bytes().repeat(2),
        vec![],
    ] {
        fs::write(&path, &bytes).unwrap();
        says(dir.path(), &["model.safetensors", "fetch it again"]);
    }
}

#[test]
fn shapes_without_a_published_form_are_not_written() {
    let plain = DecoderConfig::new(19, 16, 2, 4, 2, 24);
    let dir = tempfile::tempdir().unwrap();
    for (config, part) in [
        (DecoderConfig { qkv_bias: true, qk_norm: true, ..plain.clone() }, "qk_norm"),
        (DecoderConfig { hidden: 18, ..plain }, "multiple of heads"),
    ] {
        let made = Checkpoint::new(Decoder::new(config, 1).unwrap(), vec![0]);
        let error = made.write(dir.path()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is half written");
    }
}
