import { CloudOff } from 'lucide-react';
import { useSyncExternalStore } from 'react';
import { Button } from '../ui/button.tsx';
import { Notice } from '../ui/notification.tsx';
import { errorCode, isGone, isUnreached, repeatAfter } from './api-error.ts';
import styles from './away-notice.module.css';
import { useIsReached } from './reachability.ts';
import { queryClient } from './trpc.ts';

/** Above a page whose data may be old, because they cannot be read anew. A page without data says so itself. */
export function AwayNotice() {
  const isAway = !useIsReached();
  const error = useSyncExternalStore(subscribe, findError);
  if (!isAway && error === null) return null;
  const goesOn = isAway || repeatAfter(error) !== false;
  return (
    <div className={styles['away']} role="status">
      <Notice
        tone="warning"
        icon={<CloudOff size={18} />}
        title={isAway ? 'The server does not answer' : 'Not all of this page could be read anew'}
        action={
          <Button size="small" onClick={() => void queryClient.refetchQueries({ type: 'active' })}>
            Try again
          </Button>
        }
      >
        {isAway || error === null ? null : <p>{error.message}</p>}
        <p>What you see may be old.{goesOn ? ' The page goes on by itself as soon as it can.' : ''}</p>
      </Notice>
    </div>
  );
}

function subscribe(listener: () => void): () => void {
  return queryClient.getQueryCache().subscribe(listener);
}

/** Why something on the page is not as new as it should be, if that is not because no server answers. */
function findError(): Error | null {
  for (const query of queryClient.getQueryCache().findAll({ type: 'active' })) {
    const { data, error } = query.state;
    if (error === null || data === undefined || isGone(error) || isUnreached(error)) continue;
    // An open form says it; without one, the page is left.
    if (errorCode(error) !== 'UNAUTHORIZED') return error;
  }
  return null;
}
