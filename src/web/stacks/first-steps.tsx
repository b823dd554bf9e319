import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Layers } from 'lucide-react';
import { useState } from 'react';
import type { StackItem } from '../platform/app/contract.ts';
import { useMe } from '../platform/app/me.ts';
import { queryClient, trpc } from '../platform/app/trpc.ts';
import { Button } from '../platform/ui/button.tsx';
import { Code } from '../platform/ui/code.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import styles from './first-steps.module.css';
import { nameOf } from './stack-row.tsx';
import { firstStepTexts } from './texts.tsx';

const sample = `mkdir hello && cd hello
cat > Pulumi.yaml <<'YAML'
name: hello
runtime: yaml
resources:
  note:
    type: pulumi:index:Stash
    properties:
      input: Hello
YAML`;

const deployCommand = 'pulumi up';

/** What a person does in a terminal until the first stack is here. `organization`: the one that is shown; default: the first of the user. */
export function FirstSteps({ organization }: { readonly organization: string | undefined }) {
  const me = useMe();
  const { data, error, isPending, mutate } = useMutation(
    trpc.tokens.createMine.mutationOptions({
      // The response contains the value of the token: no cache may keep it.
      gcTime: 0,
      onSuccess: () => void queryClient.invalidateQueries({ queryKey: trpc.tokens.pathKey() }),
    }),
  );
  const name = organization ?? me?.organizations[0]?.name ?? me?.login ?? 'ORGANIZATION';
  return (
    <Empty title={firstStepTexts.noStacks} icon={<Layers size={20} />}>
      <p>{firstStepTexts.lead}</p>
      <ol className={styles['steps']}>
        <li>
          <h3>{firstStepTexts.logIn}</h3>
          {data ? (
            <Code>{`PULUMI_ACCESS_TOKEN=${data.value} pulumi login ${location.origin}`}</Code>
          ) : (
            <p>
              <Button disabled={isPending} onClick={() => mutate({ description: firstStepTexts.tokenDescription })}>
                {firstStepTexts.createToken}
              </Button>
            </p>
          )}
          {data ? <p className={styles['quiet']}>{firstStepTexts.shownOnce}</p> : null}
          {error ? <p role="alert">{error.message}</p> : null}
        </li>
        <li>
          <h3>{firstStepTexts.createStack}</h3>
          <Code>{`pulumi stack init ${name}/dev`}</Code>
          <details>
            <summary>{firstStepTexts.sample}</summary>
            <Code>{sample}</Code>
          </details>
        </li>
        <li>
          <h3>{firstStepTexts.deploy}</h3>
          <Code>{deployCommand}</Code>
        </li>
      </ol>
      <p role="status" className={styles['quiet']}>
        {firstStepTexts.waiting}
      </p>
    </Empty>
  );
}

type Stack = Pick<StackItem, 'organization' | 'project' | 'stack'>;

/** The stack that has come while the page showed that there is none; null: none has. */
export function useFirstStack(items: readonly Stack[] | null): Stack | null {
  const [wasEmpty, setWasEmpty] = useState(false);
  if (items?.length === 0 && !wasEmpty) setWasEmpty(true);
  return wasEmpty ? (items?.[0] ?? null) : null;
}

/** Greets the first stack. */
export function FirstStackNotice({ stack }: { readonly stack: Stack }) {
  return (
    <p role="status" className={styles['greeting']}>
      {firstStepTexts.isHere(
        <Link to="/$organization/$project/$stack" params={stack}>
          {nameOf(stack)}
        </Link>,
      )}
    </p>
  );
}
