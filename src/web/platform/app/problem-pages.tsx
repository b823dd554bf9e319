import { type ErrorComponentProps, Link } from '@tanstack/react-router';
import { CircleAlert, Compass, Hourglass, Lock } from 'lucide-react';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { pageTexts, problemTexts } from '../texts.tsx';
import { Button, buttonClass } from '../ui/button.tsx';
import { Empty } from '../ui/empty.tsx';
import { errorCode, isDeletedByRule, isGone, isUnreached, proxyAnswer, repeatAfter } from './api-error.ts';

/** Nothing is here, or nothing that the user may see. */
export function NotFoundPage() {
  useEffect(() => {
    const before = document.title;
    document.title = pageTexts.tabTitle(problemTexts.notFound);
    return () => {
      document.title = before;
    };
  }, []);
  return <NotFound />;
}

function NotFound() {
  return (
    <Empty title={problemTexts.notFound} isPage icon={<Compass size={20} />}>
      <p>{problemTexts.notFoundWhy}</p>
      <WayOut />
    </Empty>
  );
}

export function ErrorPage({ error, reset }: ErrorComponentProps) {
  return <Problem error={error} onRetry={reset} />;
}

export interface ProblemProps {
  readonly error: unknown;
  /** Resolves when the retry is done. */
  readonly onRetry: () => unknown;
}

/**
 * An error in place of content, which may be a part of a page: the page keeps its title. A hidden item looks like an item that does not
 * exist.
 */
export function Problem({ error, onRetry }: ProblemProps) {
  const [isTrying, retry] = useRetry(onRetry);
  const code = errorCode(error);
  if (isDeletedByRule(error))
    return (
      <Empty title={problemTexts.deletedByRule}>
        <p>{messageOf(error)}.</p>
      </Empty>
    );
  if (code === 'NOT_FOUND') return <NotFound />;
  if (code === 'FORBIDDEN')
    return (
      <Empty title={problemTexts.noAccess} icon={<Lock size={20} />} isPage isProblem>
        <p>{messageOf(error)}</p>
        <WayOut />
      </Empty>
    );
  return (
    <Empty {...headOf(error)} isPage isProblem>
      <p>{reasonOf(error)}</p>
      {repeatAfter(error) === false ? null : <p>{problemTexts.continues}</p>}
      <p>
        <Button onClick={retry}>{isTrying ? problemTexts.retrying : problemTexts.tryAgain}</Button>
      </p>
    </Empty>
  );
}

/** The same problem in one line, for a part of a page. */
export function PartProblem({ error, onRetry }: ProblemProps) {
  const [isTrying, retry] = useRetry(onRetry);
  if (isDeletedByRule(error)) return <p>{messageOf(error)}.</p>;
  if (isGone(error)) return <p>{problemTexts.notShown(messageOf(error))}</p>;
  return (
    <p role="alert">
      {problemTexts.notShown(reasonOf(error))}{' '}
      <Button size="small" kind="quiet" disabled={isTrying} onClick={retry}>
        {problemTexts.tryAgain}
      </Button>
    </p>
  );
}

function useRetry(onRetry: ProblemProps['onRetry']) {
  const [isTrying, setIsTrying] = useState(false);
  const retry = async (): Promise<void> => {
    setIsTrying(true);
    await onRetry();
    setIsTrying(false);
  };
  return [isTrying, () => void retry()] as const;
}

function headOf(error: unknown): { readonly title: string; readonly icon: ReactNode } {
  if (isUnreached(error)) return { title: problemTexts.noAnswer, icon: <CircleAlert size={20} /> };
  const code = errorCode(error);
  if (code === 'TOO_MANY_REQUESTS') return { title: problemTexts.tooManyRequests, icon: <Hourglass size={20} /> };
  if (code === 'SERVICE_UNAVAILABLE') return { title: problemTexts.unavailable, icon: <Hourglass size={20} /> };
  return { title: problemTexts.wentWrong, icon: <CircleAlert size={20} /> };
}

function WayOut() {
  return (
    <p>
      <Link to="/" className={buttonClass()}>
        {problemTexts.goToStacks}
      </Link>
    </p>
  );
}

function reasonOf(error: unknown): string {
  return isUnreached(error) ? (proxyAnswer(error) ?? problemTexts.restarting) : messageOf(error);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The problem of a query, from its state. */
export interface ReadQuery {
  readonly data: unknown;
  readonly error: unknown;
  readonly errorUpdateCount: number;
  readonly isPlaceholderData: boolean;
  readonly refetch: () => Promise<unknown>;
}

/**
 * Null if there is none. Data that cannot be refreshed stays on the page, unless it is gone: `OfflineBanner` says that it may be old. A
 * problem stays until there is data, even during retries.
 */
export function useProblem(...queries: readonly ReadQuery[]): ProblemProps | null {
  const last = useRef<unknown>(null);
  const failed = queries.find((query) => query.error !== null && (!hasData(query) || isGone(query.error)));
  if (failed !== undefined) last.current = failed.error;
  else if (!queries.some((query) => query.errorUpdateCount > 0 && !hasData(query))) last.current = null;
  if (last.current === null) return null;
  const onRetry = () => Promise.all(queries.filter((query) => !hasData(query) || query.error !== null).map(refetch));
  return { error: last.current, onRetry };
}

/** Rows of the previous filter do not count as data of this one. */
function hasData({ data, errorUpdateCount, isPlaceholderData }: ReadQuery): boolean {
  return data !== undefined && !(isPlaceholderData && errorUpdateCount > 0);
}

function refetch(query: ReadQuery): Promise<unknown> {
  return query.refetch();
}
