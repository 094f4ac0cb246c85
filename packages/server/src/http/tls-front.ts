/**
 * TLS in front of a server: HTTP/2 or HTTP/1.1 as the client prefers, with certificate files that may be replaced.
 */
import { type FSWatcher, watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Server as HttpServer } from 'node:http'
import type { Http2Server } from 'node:http2'
import { dirname } from 'node:path'
import { createSecureContext, createServer, type Server, type TLSSocket } from 'node:tls'

/** The paths of the certificate, with its chain, and its key. */
export interface CertificateFiles {
  readonly cert: string
  readonly key: string
}

export interface TlsFrontOptions {
  readonly files: CertificateFiles
  readonly http1: HttpServer
  readonly http2: Http2Server
  /** Called when another certificate is in use, or with the error if it is not. */
  onReload(error: Error | null): void
}

export interface TlsFront {
  readonly server: Server
  close(): void
}

const HANDSHAKE_MS = 10_000
/** Files are replaced one after the other; a mismatching pair is the moment in between. */
const SETTLE_MS = 200

/** Reads the files and builds the server. Rejects if they are not a certificate and its key. */
export async function createTlsFront({ files, http1, http2, onReload }: TlsFrontOptions): Promise<TlsFront> {
  const first = await read(files)
  const server = createServer({
    ...first,
    ALPNProtocols: ['h2', 'http/1.1'],
    minVersion: 'TLSv1.2',
    handshakeTimeout: HANDSHAKE_MS,
  })
  server.on('secureConnection', (socket: TLSSocket) => {
    const target = socket.alpnProtocol === 'h2' ? http2 : http1
    target.emit('connection', socket)
  })
  // It never listens itself, and would not look for overdue headers.
  http1.emit('listening')
  // Other files of the folder change too; one of them may be the log that a reload is written to.
  let told = first.cert + first.key
  const isNews = (text: string): boolean => {
    const isKnown = text === told
    told = text
    return !isKnown
  }
  let timer: NodeJS.Timeout | undefined
  const reload = () => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      read(files).then(
        pair => {
          if (!isNews(pair.cert + pair.key)) return
          server.setSecureContext(pair)
          onReload(null)
        },
        (error: Error) => isNews(error.message) && onReload(error),
      )
    }, SETTLE_MS)
  }
  // Watches the folders, because files are replaced by renaming and by links.
  const watchers: FSWatcher[] = [...new Set([files.cert, files.key].map(dirname))].map(folder =>
    watch(folder, { persistent: false }, reload),
  )
  return {
    server,
    close() {
      clearTimeout(timer)
      for (const watcher of watchers) watcher.close()
    },
  }
}

async function read({ cert, key }: CertificateFiles): Promise<{ cert: string; key: string }> {
  const pair = { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') }
  // Throws if they do not belong together.
  createSecureContext(pair)
  return pair
}
