/**
 * SHA-256 and HMAC (FIPS 180-4, RFC 2104) in plain JavaScript. Synchronous on every runtime, which WebCrypto is
 * not, and free of Node imports, so that the core also runs at the edge.
 */

// Signed, because words above 2^31 would leave the range of small integers and take four times as long.
const ROUND = Int32Array.from({ length: 64 }, (_, index) => fraction(Math.cbrt(prime(index))))
const INITIAL = Int32Array.from({ length: 8 }, (_, index) => fraction(Math.sqrt(prime(index))))
const BLOCK = 64

function prime(index: number): number {
  let candidate = 1
  for (let found = -1; found < index; ) {
    candidate++
    let divisor = 2
    while (divisor * divisor <= candidate && candidate % divisor !== 0) divisor++
    if (divisor * divisor > candidate) found++
  }
  return candidate
}

/** Returns the first 32 bits of the fractional part. */
function fraction(root: number): number {
  return Math.floor((root - Math.floor(root)) * 2 ** 32)
}

export function sha256(message: Uint8Array): Uint8Array {
  const hash = Int32Array.from(INITIAL)
  const padded = pad(message)
  const view = new DataView(padded.buffer)
  const schedule = new Int32Array(64)
  for (let offset = 0; offset < padded.length; offset += BLOCK) {
    for (let index = 0; index < 16; index++) schedule[index] = view.getInt32(offset + index * 4)
    compress(hash, schedule)
  }
  const digest = new Uint8Array(32)
  const out = new DataView(digest.buffer)
  for (const [index, word] of hash.entries()) out.setUint32(index * 4, word)
  return digest
}

/** HMAC-SHA-256 of `message` under `key`. */
export function hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array {
  const block = new Uint8Array(BLOCK)
  block.set(key.length > BLOCK ? sha256(key) : key)
  const inner = sha256(
    join(
      block.map(byte => byte ^ 0x36),
      message,
    ),
  )
  return sha256(
    join(
      block.map(byte => byte ^ 0x5c),
      inner,
    ),
  )
}

function join(first: Uint8Array, second: Uint8Array): Uint8Array {
  const joined = new Uint8Array(first.length + second.length)
  joined.set(first)
  joined.set(second, first.length)
  return joined
}

function pad(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const padded = new Uint8Array(Math.ceil((message.length + 9) / BLOCK) * BLOCK)
  padded.set(message)
  padded[message.length] = 0x80
  new DataView(padded.buffer).setBigUint64(padded.length - 8, BigInt(message.length) * 8n)
  return padded
}

function compress(hash: Int32Array, w: Int32Array): void {
  for (let i = 16; i < 64; i++) {
    const before15 = at(w, i - 15)
    const before2 = at(w, i - 2)
    const s0 = rotate(before15, 7) ^ rotate(before15, 18) ^ (before15 >>> 3)
    const s1 = rotate(before2, 17) ^ rotate(before2, 19) ^ (before2 >>> 10)
    w[i] = (at(w, i - 16) + s0 + at(w, i - 7) + s1) | 0
  }
  let a = at(hash, 0)
  let b = at(hash, 1)
  let c = at(hash, 2)
  let d = at(hash, 3)
  let e = at(hash, 4)
  let f = at(hash, 5)
  let g = at(hash, 6)
  let h = at(hash, 7)
  for (let i = 0; i < 64; i++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
    const choice = (e & f) ^ (~e & g)
    const first = (h + s1 + choice + at(ROUND, i) + at(w, i)) | 0
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
    const majority = (a & b) ^ (a & c) ^ (b & c)
    h = g
    g = f
    f = e
    e = (d + first) | 0
    d = c
    c = b
    b = a
    a = (first + s0 + majority) | 0
  }
  hash[0] = at(hash, 0) + a
  hash[1] = at(hash, 1) + b
  hash[2] = at(hash, 2) + c
  hash[3] = at(hash, 3) + d
  hash[4] = at(hash, 4) + e
  hash[5] = at(hash, 5) + f
  hash[6] = at(hash, 6) + g
  hash[7] = at(hash, 7) + h
}

function at(words: Int32Array, index: number): number {
  return words[index] as number
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits))
}
