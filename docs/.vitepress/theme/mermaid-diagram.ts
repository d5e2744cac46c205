// A mermaid block as a picture, drawn in the browser, again when the colours change. Until then, and without JavaScript, its
// source is shown.
import { useData } from 'vitepress'
import { defineComponent, h, onMounted, ref, watch } from 'vue'

let drawn = 0

export const MermaidDiagram = defineComponent({
  props: { code: { type: String, required: true } },
  setup({ code }) {
    const { isDark } = useData()
    const svg = ref('')

    async function draw(): Promise<void> {
      const [{ default: mermaid }] = await Promise.all([import('mermaid'), document.fonts.ready])
      mermaid.initialize({
        startOnLoad: false,
        securityLevel: 'strict',
        theme: 'base',
        fontFamily: getComputedStyle(document.body).fontFamily,
        themeVariables: isDark.value ? DARK : LIGHT,
        flowchart: { curve: 'basis', nodeSpacing: 32, rankSpacing: 32, padding: 10 },
        state: { nodeSpacing: 32, rankSpacing: 40 },
      })
      const result = await mermaid.render(`diagram-${(drawn += 1)}`, code)
      svg.value = result.svg
    }

    onMounted(draw)
    watch(isDark, draw)
    return () => {
      if (!svg.value) return h('figure', { class: 'diagram' }, [h('pre', code)])
      const [, width = '0'] = /max-width: ([\d.]+)px/.exec(svg.value) ?? []
      const style = { '--diagram-width': `${width}px` }
      return h('figure', { class: 'diagram', style, innerHTML: svg.value })
    }
  },
})

// Ink, line and ground, as in style.css.
const LIGHT = {
  darkMode: false,
  fontSize: '15px',
  background: '#ffffff',
  primaryColor: '#eef2fd',
  primaryBorderColor: '#2f55c8',
  primaryTextColor: '#14181f',
  secondaryColor: '#f0f2f5',
  tertiaryColor: '#f5f6f8',
  tertiaryBorderColor: '#c3cad3',
  tertiaryTextColor: '#566070',
  lineColor: '#566070',
  textColor: '#14181f',
  edgeLabelBackground: '#ffffff',
  noteBkgColor: '#fdf3e0',
  noteBorderColor: '#b06a00',
  noteTextColor: '#14181f',
}

const DARK = {
  darkMode: true,
  fontSize: '15px',
  background: '#0e1116',
  primaryColor: '#1b2542',
  primaryBorderColor: '#8fabff',
  primaryTextColor: '#e7eaef',
  secondaryColor: '#1c222b',
  tertiaryColor: '#151a21',
  tertiaryBorderColor: '#3b4452',
  tertiaryTextColor: '#9aa5b4',
  lineColor: '#9aa5b4',
  textColor: '#e7eaef',
  edgeLabelBackground: '#0e1116',
  noteBkgColor: '#2a2010',
  noteBorderColor: '#eab54f',
  noteTextColor: '#e7eaef',
}
