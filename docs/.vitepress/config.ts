// The documentation as a site: `npm run docs` serves it, `npm run docs:build` builds it and fails on a dead link. Nothing on a
// page comes from another server: fonts, search index and diagrams are built in.
import { cp } from 'node:fs/promises'
import { defineConfig } from 'vitepress'
import { diagramsAndLinks, githubSlug } from './markdown.ts'
import { nav, sidebar } from './pages.ts'

export default defineConfig({
  title: 'aftercommit',
  description:
    'A hybrid transactional outbox for TypeScript: events go out the moment they commit, and none is lost.',
  lang: 'en',
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: '/logo.svg' }],
    ['meta', { name: 'theme-color', content: '#2a52be' }],
  ],
  rewrites: { 'decisions/README.md': 'decisions/index.md' },
  ignoreDeadLinks: false,
  markdown: {
    anchor: { slugify: githubSlug },
    toc: { slugify: githubSlug },
    config: diagramsAndLinks,
  },
  themeConfig: {
    logo: { src: '/logo.svg', alt: '' },
    nav,
    sidebar,
    outline: { level: [2, 3] },
    search: { provider: 'local' },
    externalLinkIcon: true,
    footer: { message: 'MIT licensed' },
  },
  // Mermaid is one large chunk. It is loaded only by pages with a diagram.
  vite: { build: { chunkSizeWarningLimit: 1_500 } },
  transformPageData({ relativePath, frontmatter }) {
    if (relativePath === 'comparison.md')
      Object.assign(frontmatter, { pageClass: 'whole-width', aside: false })
  },
  // Files that pages link to and that are no pages: the Grafana dashboard and the alert rules.
  async buildEnd({ srcDir, outDir }) {
    await cp(`${srcDir}/monitoring`, `${outDir}/monitoring`, { recursive: true })
  },
})
