// The path of an event, on the home page: the same picture as in the README, in the colours of the page.
import { h } from 'vue'
import picture from '../../images/path.svg?raw'

export const PathDiagram = () => h('div', { class: 'path-diagram', innerHTML: picture })
