import { CloudOff } from 'lucide-react';
import { Button } from '../ui/button.tsx';
import { Notice } from '../ui/notice.tsx';
import styles from './away-notice.module.css';
import { useIsReached } from './reachability.ts';
import { queryClient } from './trpc.ts';

/** Above a page whose data may be old, because the server does not answer. A page without data says so itself. */
export function AwayNotice() {
  if (useIsReached()) return null;
  return (
    <div className={styles['away']} role="status">
      <Notice
        tone="warning"
        icon={<CloudOff size={18} />}
        title="The server does not answer"
        action={
          <Button size="small" onClick={() => void queryClient.refetchQueries({ type: 'active' })}>
            Try again
          </Button>
        }
      >
        What you see may be old. The page goes on by itself when the server answers.
      </Notice>
    </div>
  );
}
