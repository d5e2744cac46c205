// VitePress's own theme, in the colours of the dashboard, with two components of ours.
import type { Theme } from 'vitepress'
import DefaultTheme from 'vitepress/theme'
import { h } from 'vue'
import { MermaidDiagram } from './mermaid-diagram.ts'
import { PathDiagram } from './path-diagram.ts'
// oxlint-disable-next-line import/no-unassigned-import -- a style sheet has nothing to assign
import './style.css'

const theme: Theme = {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'home-hero-image': () => h(PathDiagram) }),
  enhanceApp({ app }) {
    app.component('MermaidDiagram', MermaidDiagram)
  },
}

export default theme
