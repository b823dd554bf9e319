import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Clock, EyeOff } from 'lucide-react';
import { trpc } from '../platform/app/trpc.ts';
import styles from './search-page.module.css';
import type { Within } from './search-terms.ts';
import { searchSummaryTexts } from './texts.tsx';

/** Whether the number is exact, and whether permissions limit it. */
export function Answer({ query, within }: { readonly query: string; readonly within: Within }) {
  const counts = useQuery(
    trpc.search.count.queryOptions(
      { query, ...within, by: 'type' },
      { placeholderData: keepPreviousData, refetchOnWindowFocus: false, enabled: query !== '' },
    ),
  );
  if (query === '' || counts.error) return null;
  // The results of the previous query do not apply to this one.
  if (counts.data === undefined || counts.isPlaceholderData)
    return (
      <p className={styles['answer']} role="status">
        {searchSummaryTexts.counting}
      </p>
    );
  const { behind, isCut, isTrimmed, resources } = counts.data;
  return (
    <p className={styles['answer']} role="status">
      <span>{searchSummaryTexts.resources(isCut, resources)}</span>
      <span className={styles['kind']}>{isCut ? searchSummaryTexts.cutShort : searchSummaryTexts.exact}</span>
      {behind ? (
        <span className={styles['trimmed']}>
          <Clock size={13} aria-hidden="true" /> {searchSummaryTexts.behind(behind.stacks, behind.oldestSeconds)}
        </span>
      ) : null}
      {isTrimmed ? (
        <span className={styles['trimmed']}>
          <EyeOff size={13} aria-hidden="true" /> {searchSummaryTexts.trimmed}
        </span>
      ) : null}
    </p>
  );
}
