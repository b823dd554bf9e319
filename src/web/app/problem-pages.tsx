import { type ErrorComponentProps, Link } from '@tanstack/react-router';
import { CircleAlert, Compass } from 'lucide-react';
import { Button, buttonClass } from '../ui/button.tsx';
import { Empty } from '../ui/empty.tsx';
import { errorCode, isUnreached } from './api-error.ts';

/** There is nothing at this path, or nothing that the user may see. */
export function NotFoundPage() {
  return (
    <Empty title="There is nothing here" isPage icon={<Compass size={20} />}>
      <p>The organization, stack or update may have been deleted or renamed, or you may not be allowed to see it.</p>
      <p>
        <Link to="/" className={buttonClass()}>
          Go to the stacks
        </Link>
      </p>
    </Empty>
  );
}

/** Something threw: in a query, or in the page itself. */
export function ErrorPage({ error, reset }: ErrorComponentProps) {
  return <Problem error={error} onRetry={reset} />;
}

/** An error in place of content. A thing that one may not see looks like one that does not exist. */
export function Problem({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) {
  const code = errorCode(error);
  if (code === 'NOT_FOUND') return <NotFoundPage />;
  const isAway = isUnreached(error);
  return (
    <Empty
      title={isAway ? 'The server does not answer' : 'This did not work'}
      icon={<CircleAlert size={20} />}
      isPage
      isProblem
    >
      <p>
        {isAway
          ? 'It may be restarting, or your connection is gone. Updates that run are not affected by this page.'
          : messageOf(error)}
      </p>
      <p>
        <Button onClick={onRetry}>Try again</Button>
      </p>
    </Empty>
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
