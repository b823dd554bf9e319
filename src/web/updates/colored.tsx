import { memo } from 'react';
import styles from './colored.module.css';
import { parseColoredText, type TextSpan } from './colored-text.ts';

/** It is never HTML. */
export const Colored = memo(function Colored({ text }: { readonly text: string }) {
  return <ColoredSpans spans={parseColoredText(text)} />;
});

/** Like `Colored`, for a text that is already split into its styles. */
export function ColoredSpans({ spans }: { readonly spans: readonly TextSpan[] }) {
  return (
    <span className={styles['text']}>
      {spans.map((span, at) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text have no other identity.
          key={at}
          className={
            [
              ...[span.isBold && styles['bold'], span.isUnderlined && styles['underlined']],
              ...[span.foreground !== null && styles[colors[span.foreground % 8] ?? '']],
            ]
              .filter(Boolean)
              .join(' ') || undefined
          }
        >
          {span.text}
        </span>
      ))}
    </span>
  );
}

/** Backgrounds are left out: with the page's own colors, they could hide text. */
const colors = ['', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', ''];
