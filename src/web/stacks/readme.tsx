import { type ComponentProps, useState } from 'react';
import Markdown from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { Button } from '../platform/ui/button.tsx';
import { ExternalLink } from '../platform/ui/external-link.tsx';
import { safeLink } from '../platform/ui/safe-link.ts';
import { beginningOf } from './beginning-of.ts';
import styles from './readme.module.css';
import { readmeTexts } from './stack/texts.tsx';

const plugins = [remarkGfm];

/** The headings of the text are below the section's heading. */
const components: ComponentProps<typeof Markdown>['components'] = {
  h1: ({ children }) => <h3 className={styles['first']}>{children}</h3>,
  h2: ({ children }) => <h4>{children}</h4>,
  h3: ({ children }) => <h5>{children}</h5>,
  h4: ({ children }) => <h6>{children}</h6>,
  h5: ({ children }) => <h6>{children}</h6>,
  a: ({ children, href }) => <ExternalLink href={href ?? null}>{children}</ExternalLink>,
  // An image from another site would reveal to that site who reads this page.
  img: ({ alt, src }) => {
    const address = typeof src === 'string' ? src : null;
    return (
      <ExternalLink href={safeLink(address)}>{alt === undefined || alt === '' ? readmeTexts.image : alt}</ExternalLink>
    );
  },
  // Scrollable with the keyboard as well.
  pre: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls.
    <pre tabIndex={0}>{children}</pre>
  ),
  table: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls.
    <div className={styles['table']} tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
  input: ({ checked }) => <span>{checked ? '☑' : '☐'}</span>,
};

/** Untrusted Markdown: no raw HTML, no scripts, and no external content. */
export default function Readme({ isCut, text }: { readonly text: string; readonly isCut: boolean }) {
  const [isWhole, setIsWhole] = useState(beginningOf(text) === text);
  return (
    <div className={styles['readme']}>
      <Markdown remarkPlugins={plugins} components={components} skipHtml urlTransform={(url) => safeLink(url) ?? ''}>
        {isWhole ? text : beginningOf(text)}
      </Markdown>
      {isWhole ? null : (
        <Button size="small" className={styles['rest']} onClick={() => setIsWhole(true)}>
          {readmeTexts.showRest}
        </Button>
      )}
      {isWhole && isCut ? (
        <p className={styles['cut']}>{readmeTexts.isLonger(<code>pulumi stack output readme</code>)}</p>
      ) : null}
    </div>
  );
}
