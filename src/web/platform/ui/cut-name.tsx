import type { CSSProperties } from 'react';
import styles from './cut-name.module.css';

/** Number of final characters that stay visible: generated names often differ only there. */
const endChars = 8;
/** Shorter names are cut only at their end. */
const minChars = 20;
/** Names in other scripts are not split, because their letters may be joined or run from right to left. */
const mayBeCut = /^[\x20-\x7e]+$/;

/**
 * A name on one line, in a row. If it does not fit, its beginning and its end stay visible; while its link has the focus, the whole name is
 * visible. `className` is for the whole element.
 */
export function CutName({ className = '', text }: { readonly text: string; readonly className?: string | undefined }) {
  const length = { '--chars': text.length } as CSSProperties;
  if (text.length < minChars || !mayBeCut.test(text)) {
    return (
      <span className={`${styles['whole']} ${className}`} style={length}>
        {text}
      </span>
    );
  }
  return (
    <span className={`${styles['parts']} ${className}`} style={length} data-full={text}>
      <span className="unseen">{text}</span>
      <span className={styles['start']} aria-hidden="true">
        {text.slice(0, -endChars)}
      </span>
      <span className={styles['end']} aria-hidden="true">
        {text.slice(-endChars)}
      </span>
    </span>
  );
}
