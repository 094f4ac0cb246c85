/**
 * Real servers that run scripts: Python's CGI server, and nginx before php-cgi. What follows a script in the path is
 * its path info. Each script says in a header which one it is.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { findFreePort } from './free-port.ts'
import { canConnect, startNginx } from './proxy-process.ts'
import { HIT, ROUTES } from './server-setups.ts'
import { SPELLINGS, type Spelling, spellingsOfScripts } from './spellings.ts'
import { systemProgram } from './system-program.ts'
import { waitUntil } from './wait-until.ts'

/** A server that a test started on a port of 127.0.0.1. */
export interface ScriptServer {
  readonly port: number
  stop(): Promise<void>
}

export interface ScriptSetup {
  /** The routes, each with a plain path. */
  readonly routes: Readonly<Record<string, string>>
  readonly spellings: readonly Spelling[]
  start(): Promise<ScriptServer>
}

const PYTHON_SCRIPTS = ['/cgi-bin/login.py', '/cgi-bin/token', '/cgi-bin/admin/users.py']
const PHP_SCRIPTS = ['/login.php', '/users/list.php', '/health.php']

export const SCRIPT_SERVERS: Readonly<Record<string, ScriptSetup>> = {
  'Python’s CGI server': { ...ofScripts(PYTHON_SCRIPTS), start: startPythonCgi },
  'php-cgi, path info split off by nginx': {
    ...ofScripts(PHP_SCRIPTS),
    start: () =>
      startPhp(`location ~ \\.php(/|$) {
        fastcgi_split_path_info ^(.+?\\.php)(/.*)$;
        fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
        fastcgi_param PATH_INFO $fastcgi_path_info;`),
  },
  'php-cgi, path info found by PHP': {
    ...ofScripts(PHP_SCRIPTS),
    start: () =>
      startPhp(`location ~ \\.php {
        fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;`),
  },
  'php-cgi, one script with patterns': {
    routes: ROUTES,
    spellings: SPELLINGS,
    start: () =>
      startPhp(`location / {
        fastcgi_param SCRIPT_FILENAME $document_root/router.php;`),
  },
}

function ofScripts(paths: readonly string[]): Pick<ScriptSetup, 'routes' | 'spellings'> {
  return {
    routes: Object.fromEntries(paths.map(path => [path, path])),
    spellings: spellingsOfScripts(paths),
  }
}

const CGI_SERVER = `
import http.server
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.CGIHTTPRequestHandler)
print(server.server_address[1], flush=True)
server.serve_forever()
`

async function startPythonCgi(): Promise<ScriptServer> {
  const path = await systemProgram('python3')
  const folder = makeFolder()
  for (const script of PYTHON_SCRIPTS) {
    writeScript(folder, script, `#!/bin/sh\nprintf '${HIT}: ${script}\\r\\n\\r\\nok'\n`)
  }
  const child = spawn(path, ['-W', 'ignore', '-c', CGI_SERVER], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(child, 'exit')
  const [line] = (await Promise.race([once(child.stdout, 'data'), ended])) as [unknown]
  const port = Number(line)
  if (child.exitCode !== null || !(port > 0)) throw new Error('Python’s CGI server did not start')
  return {
    port,
    async stop() {
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Looks a route up as people do: by patterns that end in `$`, which in PHP also matches before a line end. */
const ROUTER = `<?php
$path = rawurldecode(explode('?', $_SERVER['REQUEST_URI'], 2)[0]);
foreach (json_decode('${JSON.stringify(Object.keys(ROUTES))}') as $name) {
  $pattern = str_replace('/*', '(?:/.*)?', preg_replace('~:\\\\w+~', '[^/]+', $name));
  if (!preg_match("~^$pattern$~", $path)) continue;
  header('${HIT}: ' . $name);
  break;
}
`

async function startPhp(location: string): Promise<ScriptServer> {
  const path = await systemProgram('php-cgi')
  const folder = makeFolder()
  for (const script of PHP_SCRIPTS) writeScript(folder, script, `<?php header('${HIT}: ${script}');`)
  writeScript(folder, '/router.php', ROUTER)
  const port = await findFreePort()
  const php = spawn(path, ['-b', `127.0.0.1:${port}`], {
    stdio: 'ignore',
    // By default it ends after 500 requests.
    env: { ...process.env, PHP_FCGI_MAX_REQUESTS: '1000000' },
  })
  const ended = once(php, 'exit')
  await waitUntil('php-cgi listens', async () => php.exitCode !== null || (await canConnect(port)))
  if (php.exitCode !== null) throw new Error(`php-cgi ended with ${php.exitCode}`)
  const nginx = await startNginx(`server {
    listen 80;
    root ${folder};
    ${location}
        fastcgi_param REQUEST_METHOD $request_method;
        fastcgi_param REQUEST_URI $request_uri;
        fastcgi_param SCRIPT_NAME $fastcgi_script_name;
        fastcgi_param QUERY_STRING $query_string;
        fastcgi_param REDIRECT_STATUS 200;
        fastcgi_pass 127.0.0.1:${port};
    }
  }`)
  return {
    port: Number(new URL(nginx.url).port),
    async stop() {
      await nginx.stop()
      php.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The servers run scripts as nobody, who has to be able to read them. */
function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-scripts-'))
  chmodSync(folder, 0o755)
  return folder
}

function writeScript(folder: string, path: string, text: string): void {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  chmodSync(file, 0o755)
}
