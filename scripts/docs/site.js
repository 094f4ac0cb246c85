// Search on the page: the index is built beside it, and fetched when somebody begins to type.
import MiniSearch from './minisearch.js'

const root = new URL('.', import.meta.url)
const input = document.querySelector('#search')
const found = document.querySelector('#found')
let index

async function search() {
  index ??= fetch(new URL('search.json', root)).then(async response =>
    MiniSearch.loadJSON(await response.text(), {
      fields: ['title', 'text'],
      storeFields: ['title', 'page', 'address'],
    }),
  )
  const hits = (await index).search(input.value, {
    prefix: true,
    fuzzy: 0.1,
    boost: { title: 3 },
    combineWith: 'AND',
  })
  found.replaceChildren(...hits.slice(0, 12).map(toItem))
}

function toItem({ title, page, address }) {
  const item = document.createElement('li')
  const link = document.createElement('a')
  link.href = new URL(address, root)
  link.textContent = title === page ? title : `${page}: ${title}`
  item.append(link)
  return item
}

input.addEventListener('input', search)
input.form.addEventListener('submit', event => {
  event.preventDefault()
  found.querySelector('a')?.click()
})
document.addEventListener('keydown', event => {
  if (event.key === '/' && document.activeElement !== input) {
    event.preventDefault()
    input.focus()
  }
  if (event.key === 'Escape') found.replaceChildren()
})
