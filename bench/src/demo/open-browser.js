import { spawn } from 'node:child_process'

/** Shows an address in the browser of whoever sits at this terminal; does nothing where nobody can see it. @param {string} url */
export function openBrowser(url) {
  const command = openerOf(process.platform)
  if (command === null || process.stdout.isTTY !== true) return
  // No browser is no reason to stop: the address stands on the screen.
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
