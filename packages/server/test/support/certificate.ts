import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Creates a key and a self-signed certificate for a name or an address. */
export async function certificate(name: string): Promise<{ readonly key: string; readonly cert: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-certificate-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const kind = /^[\d.]+$/.test(name) ? 'IP' : 'DNS'
  await run('openssl', [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
    '-subj',
    `/CN=${name}`,
    '-addext',
    `subjectAltName=${kind}:${name}`,
    '-keyout',
    key,
    '-out',
    cert,
  ])
  try {
    return { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
