import type { ReactNode } from 'react';
import styles from './print-note.module.css';
import { printNoteTexts } from './texts.tsx';
import { maxPrintedRows } from './virtual-rows.ts';

/** On paper, says below the loaded rows that the list continues. `children`: the location of the whole list. */
export function PrintNote({
  children,
  count,
  hasMore = false,
}: {
  readonly count: number;
  readonly hasMore?: boolean;
  readonly children?: ReactNode;
}) {
  if (!hasMore && count <= maxPrintedRows) return null;
  return (
    <p className={styles['note']}>
      {printNoteTexts.firstRows(Math.min(count, maxPrintedRows))} {children}
    </p>
  );
}
