import type { CSSProperties } from 'react';
import styles from './cut-name.module.css';

/** Characters at the end that stay: names that a program makes often differ there only. */
const endChars = 8;
/** Shorter names are only cut at their end. */
const minChars = 20;
/** Letters of other scripts are joined, and some scripts run the other way. */
const mayBeCut = /^[\x20-\x7e]+$/;

/** A name in one line, in a row. Where there is no room for all of it, its beginning and its end stay. `className` of the whole. */
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
    <span className={`${styles['parts']} ${className}`} style={length}>
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
