import { execFile } from 'node:child_process'
import { closeSync, openSync, writeSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { launchRedis } from './redis-launch.ts'
import { ephemeralSettings, type RedisProcess } from './redis-process.ts'

const SOURCE = fileURLToPath(new URL('clock-shim.c', import.meta.url))
const LIBRARY = 'clock-shim.so'
const OFFSET = 'clock-offset'

export interface ShiftedRedis extends RedisProcess {
  /** Sets the server's wall clock this far from the real one. Not cumulative; 0 restores the real time. */
  shiftClock(offsetUs: number): void
}

/** Starts a redis-server whose TIME can be moved while it runs, forwards and backwards. Linux only. */
export async function startShiftedRedis(
  options: { readonly args?: readonly string[] } = {},
): Promise<ShiftedRedis> {
  const settings = await ephemeralSettings()
  const redis = await launchRedis(async ({ port, dir }) => {
    await compileShim(join(dir, LIBRARY))
    await writeFile(join(dir, OFFSET), encodeOffset(0))
    return {
      args: ['--port', String(port), ...settings, ...(options.args ?? [])],
      env: { LD_PRELOAD: join(dir, LIBRARY), HEADGATE_CLOCK_OFFSET: join(dir, OFFSET) },
    }
  })
  return { ...redis, shiftClock: offsetUs => writeOffset(join(redis.dir, OFFSET), offsetUs) }
}

async function compileShim(library: string): Promise<void> {
  if (process.platform !== 'linux') {
    throw new Error('The clock shim needs Linux: it puts itself between redis-server and its C library.')
  }
  try {
    await promisify(execFile)('cc', ['-shared', '-fPIC', '-O2', '-Wall', '-o', library, SOURCE])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new Error(
      'The clock shim is compiled with cc, which is not installed.\n' +
        '  Debian, Ubuntu   sudo apt-get install -y gcc libc6-dev\n' +
        '  Fedora, RHEL     sudo dnf install -y gcc\n' +
        '  Alpine           sudo apk add gcc musl-dev',
      { cause: error },
    )
  }
}

function encodeOffset(offsetUs: number): Buffer {
  // A typed array keeps the processor's own byte order, which is how the library reads it.
  return Buffer.from(BigInt64Array.of(BigInt(offsetUs)).buffer)
}

/** One aligned write of eight bytes in place: the server never sees half an offset, nor a truncated file. */
function writeOffset(path: string, offsetUs: number): void {
  const file = openSync(path, 'r+')
  try {
    writeSync(file, encodeOffset(offsetUs), 0, 8, 0)
  } finally {
    closeSync(file)
  }
}
