// The frame of a page. Everything it loads is beside it: no font, script or picture comes from elsewhere.

import { posix } from 'node:path'

const escaped = text => text.replace(/[&<>"]/g, character => `&#${character.charCodeAt(0)};`)
const withoutMarks = title => title.replace(/[`*]/g, '')

/** Returns the whole page. */
export function layOut(page, html, { pages, groups }) {
  const to = address => posix.relative(posix.dirname(page.address), address) || posix.basename(address)
  const link = path => {
    const { address, title } = pages.get(path)
    const here = path === page.path ? ' aria-current="page"' : ''
    return `<li><a href="${to(address)}"${here}>${escaped(withoutMarks(title))}</a></li>`
  }
  const navigation = groups.map(({ title, paths }, index) => {
    const open = index < 2 || paths.includes(page.path)
    return `<details${open ? ' open' : ''}><summary>${title}</summary><ul>${paths.map(link).join('')}</ul></details>`
  })
  const title = page.address === 'index.html' ? 'Headgate' : `${withoutMarks(page.title)} · Headgate`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'">
<title>${escaped(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${to('site.css')}">
<script type="module" src="${to('site.js')}"></script>
</head>
<body>
<header>
<a class="name" href="${to('index.html')}">Headgate</a>
<form role="search"><input id="search" type="search" placeholder="Search" aria-label="Search" autocomplete="off"></form>
<ol id="found" aria-live="polite"></ol>
</header>
<nav aria-label="Pages">${navigation.join('\n')}</nav>
<main>
${html}
</main>
</body>
</html>
`
}
