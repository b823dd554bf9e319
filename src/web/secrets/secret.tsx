import { useQuery } from '@tanstack/react-query';
import { Eye, EyeOff } from 'lucide-react';
import { useCallback, useEffect, useRef, useState } from 'react';
import { errorCode } from '../platform/app/api-error.ts';
import type { SecretLocation, StackRef } from '../platform/app/procedure-types.ts';
import { apiClient, queryClient, trpc } from '../platform/app/trpc.ts';
import { Button } from '../platform/ui/button.tsx';
import { CopyButton } from '../platform/ui/code.tsx';
import { Redacted } from '../platform/ui/json-view.tsx';
import styles from './secret.module.css';
import { secretTexts } from './texts.ts';

/** Time after which a value is hidden again. */
const shownMs = 30_000;

/** Whether the user may decrypt secrets of the stack. */
export function useMayDecrypt(stack: StackRef): boolean {
  const { organization, project, stack: name } = stack;
  const query = useQuery(trpc.stacks.get.queryOptions({ organization, project, stack: name }));
  return query.data?.permissions.includes('decrypt') ?? false;
}

/** A button reveals the value for a while if the user may decrypt. The audit log records each click. */
export function Secret({
  location,
  name,
  stack,
}: {
  readonly stack: StackRef;
  readonly location: SecretLocation;
  /** The name of the value, for the button. */
  readonly name: string;
}) {
  const mayDecrypt = useMayDecrypt(stack);
  // Kept only here: a cache would retain the value.
  const [value, setValue] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const isAsking = useRef(false);
  const place = useRef<HTMLSpanElement>(null);
  const hadFocus = useRef(false);
  /** The focused element disappears: its replacement gets the focus, and is read out. */
  const replace = useCallback((shown: string | null): void => {
    hadFocus.current = place.current?.contains(document.activeElement) ?? false;
    setValue(shown);
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: after the value has come or gone.
  useEffect(() => {
    if (hadFocus.current) place.current?.querySelector<HTMLElement>('[data-focus]')?.focus();
    hadFocus.current = false;
  }, [value]);
  // The value belongs to the item that was at this place.
  const shownOf = location.of === 'resource' ? location.digest : undefined;
  const current = useRef(shownOf);
  current.current = shownOf;
  // biome-ignore lint/correctness/useExhaustiveDependencies: when what is around it has changed.
  useEffect(() => replace(null), [replace, shownOf]);
  useEffect(() => {
    if (value === null) return undefined;
    const hide = (): void => replace(null);
    const onLeave = (): void => {
      if (document.visibilityState === 'hidden') hide();
    };
    const timer = setTimeout(hide, shownMs);
    document.addEventListener('visibilitychange', onLeave);
    addEventListener('pagehide', hide);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onLeave);
      removeEventListener('pagehide', hide);
    };
  }, [replace, value]);
  const reveal = async (): Promise<void> => {
    // A disabled button would lose the focus.
    if (isAsking.current) return;
    isAsking.current = true;
    setProblem(null);
    try {
      const { organization, project, stack: of } = stack;
      const revealed = await apiClient.secrets.reveal.mutate({ organization, project, stack: of, location });
      if (current.current !== shownOf) setProblem(secretTexts.notNow);
      // Not in a hidden tab, where the value would still be shown on return.
      else if (document.visibilityState !== 'hidden') replace(revealed.value);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : secretTexts.notNow);
      if (errorCode(error) === 'CONFLICT')
        void queryClient.invalidateQueries({ queryKey: trpc.resources.get.pathKey() });
    } finally {
      isAsking.current = false;
    }
  };
  if (value !== null) {
    return (
      <span ref={place} className={styles['secret']}>
        <span className={styles['value']} tabIndex={-1} data-focus>
          {value}
        </span>
        <CopyButton text={value} label={secretTexts.copy(name)} />
        <Button kind="quiet" size="small" aria-label={secretTexts.hideValue(name)} onClick={() => replace(null)}>
          <EyeOff size={14} aria-hidden="true" /> {secretTexts.hide}
        </Button>
      </span>
    );
  }
  return (
    <span ref={place} className={styles['secret']}>
      <Redacted />
      {mayDecrypt ? (
        <Button
          kind="quiet"
          size="small"
          aria-label={secretTexts.revealValue(name)}
          title={secretTexts.shownFor}
          data-focus
          onClick={() => void reveal()}
        >
          <Eye size={14} aria-hidden="true" /> {secretTexts.reveal}
        </Button>
      ) : null}
      {problem === null ? null : (
        <span role="alert" className={styles['problem']}>
          {problem}
        </span>
      )}
    </span>
  );
}
