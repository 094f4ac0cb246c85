import { spawn } from 'node:child_process'

/** Opens an address in a browser if somebody sits at this terminal. @param {string} url */
export function openBrowser(url) {
  const command = openerOf(process.platform)
  if (command === null || process.stdout.isTTY !== true) return
  // The demo goes on without a browser: the address is on the screen.
  spawn(command, [url], { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref()
}

/** @param {NodeJS.Platform} platform */
function openerOf(platform) {
  if (platform === 'darwin') return 'open'
  const hasDisplay = Boolean(process.env.DISPLAY || process.env.WAYLAND_DISPLAY)
  return platform === 'linux' && hasDisplay ? 'xdg-open' : null
}
