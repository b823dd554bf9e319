import { ArrowUpRight } from 'lucide-react';
import type { ReactNode } from 'react';
import styles from './external-link.module.css';
import { safeLink } from './safe-link.ts';
import { externalLinkTexts } from './texts.tsx';

/** Only the text, if the address is not safe. */
export function ExternalLink({ children, href }: { readonly href: string | null; readonly children: ReactNode }) {
  const safe = safeLink(href);
  if (safe === null) return <span className={styles['text']}>{children}</span>;
  return (
    <a className={styles['link']} href={safe} target="_blank" rel="noopener noreferrer nofollow" title={safe}>
      <span className={styles['text']}>{children}</span>
      <ArrowUpRight size={13} aria-hidden="true" />
      <span className="unseen">{externalLinkTexts.anotherSite}</span>
    </a>
  );
}
