import { CloudOff } from 'lucide-react';
import { useEffect, useSyncExternalStore } from 'react';
import { problemTexts } from '../texts.tsx';
import { Button } from '../ui/button.tsx';
import { Notice } from '../ui/notice.tsx';
import { errorCode, isGone, isUnreached, repeatAfter } from './api-error.ts';
import styles from './offline-banner.module.css';
import { useIsReached } from './reachability.ts';
import { queryClient } from './trpc.ts';
import { watchServer } from './watch-server.ts';

/** The data of the page may be old because it cannot be refreshed. A page without data shows the problem itself. */
export function OfflineBanner() {
  const isAway = !useIsReached();
  const error = useSyncExternalStore(subscribe, findError);
  useEffect(watchServer, []);
  // The element is always present: most screen readers announce only changes inside it.
  return <div role="status">{isAway || error !== null ? <Away isAway={isAway} error={error} /> : null}</div>;
}

function Away({ error, isAway }: { readonly isAway: boolean; readonly error: Error | null }) {
  const goesOn = isAway || repeatAfter(error) !== false;
  return (
    <div className={styles['away']}>
      <Notice
        tone="warning"
        icon={<CloudOff size={18} />}
        title={isAway ? problemTexts.noAnswer : problemTexts.notRefreshed}
        action={
          <Button size="small" onClick={() => void queryClient.refetchQueries({ type: 'active' })}>
            {problemTexts.tryAgain}
          </Button>
        }
      >
        {isAway || error === null ? null : <p>{error.message}</p>}
        <p>{goesOn ? `${problemTexts.mayBeOutOfDate} ${problemTexts.refreshes}` : problemTexts.mayBeOutOfDate}</p>
      </Notice>
    </div>
  );
}

function subscribe(listener: () => void): () => void {
  return queryClient.getQueryCache().subscribe(listener);
}

/** Unless the cause is that no server answers. */
function findError(): Error | null {
  for (const query of queryClient.getQueryCache().findAll({ type: 'active' })) {
    const { data, error } = query.state;
    if (error === null || data === undefined || isGone(error) || isUnreached(error)) continue;
    // An open form shows this problem; without a form, the browser leaves the page.
    if (errorCode(error) !== 'UNAUTHORIZED') return error;
  }
  return null;
}
