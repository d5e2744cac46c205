// Where the page begins. The server sends this with index.html and knows nothing else of it.
import { render } from 'preact'
import { App } from './app.tsx'
import { applyTheme } from './data/theme.ts'

applyTheme()
render(<App />, document.querySelector('#page')!)
