// What makes the same Markdown right on GitHub and on the site: diagrams, anchors, and links that leave docs/.
import { posix } from 'node:path'
import type { MarkdownOptions } from 'vitepress'

type MarkdownIt = Parameters<NonNullable<MarkdownOptions['config']>>[0]

/** The anchor that GitHub gives a heading. */
export function githubSlug(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '')
    .replaceAll(' ', '-')
}

export function diagramsAndLinks(md: MarkdownIt): void {
  const { fence } = md.renderer.rules
  md.renderer.rules.fence = (tokens, index, options, env, self) => {
    const { info, content } = tokens[index]!
    if (info.trim() !== 'mermaid') return fence!(tokens, index, options, env, self)
    return `<MermaidDiagram code="${md.utils.escapeHtml(content)}" />\n`
  }

  // Before VitePress looks for dead links. A link to the README of a folder leads to the page that the site makes of it. One to
  // a file that is not part of the site, such as ../README.md or ../test, becomes plain text: the package has no address
  // where a reader could follow it.
  md.core.ruler.push('links-of-github', ({ tokens, env }) => {
    const page = (env as { relativePath: string }).relativePath
    for (const { children } of tokens) {
      let isOpen = false
      for (const token of children ?? []) {
        const target = token.type === 'link_open' ? token.attrGet('href')! : ''
        if (leavesDocs(page, target)) isOpen = true
        else if (/^(?:[./\w-]*\/)?README\.md/.test(target)) {
          token.attrSet('href', target.replace('README.md', 'index.md'))
        }
        if (!isOpen || !token.type.startsWith('link_')) continue
        isOpen = token.type === 'link_open'
        token.tag = 'span'
        token.attrs = null
        token.type = 'text_span'
      }
    }
  })
}

function leavesDocs(page: string, target: string): boolean {
  if (!/^\.\.?\//.test(target)) return false
  return posix.join(posix.dirname(page), target).startsWith('../')
}
