import { Link } from '@tanstack/react-router';
import { Layers } from 'lucide-react';
import { useMe } from '../platform/app/me.ts';
import { Button } from '../platform/ui/button.tsx';
import { Code } from '../platform/ui/code.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { HaltNote } from '../platform/ui/halt-note.tsx';
import type { FirstStack, FirstToken } from './first-stack.ts';
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

/** The token is shown only once. */
function LoginCommand({ value }: { readonly value: string }) {
  return (
    <>
      <Code>{`PULUMI_ACCESS_TOKEN=${value} pulumi login ${location.origin}`}</Code>
      <p className={styles['quiet']} data-draft="">
        {firstStepTexts.shownOnce}
      </p>
      <HaltNote className={styles['quiet']} />
    </>
  );
}

/** Shown until the user has stored the command. */
export function FirstTokenNotice({ token: { data, reset } }: { readonly token: FirstToken }) {
  if (data === undefined) return null;
  return (
    <div className={styles['token']}>
      <LoginCommand value={data.value} />
      <Button size="small" onClick={reset}>
        {firstStepTexts.stored}
      </Button>
    </div>
  );
}

/** The steps in a terminal until the first stack exists. `organization`: the shown organization; default: the user's first. */
export function FirstSteps({
  organization,
  token: { data, error, isPending, mutate },
}: {
  readonly organization: string | undefined;
  readonly token: FirstToken;
}) {
  const me = useMe();
  const name = organization ?? me?.organizations[0]?.name ?? me?.login ?? 'ORGANIZATION';
  return (
    <Empty title={firstStepTexts.noStacks} icon={<Layers size={20} />}>
      <p>{firstStepTexts.lead}</p>
      <ol className={styles['steps']}>
        <li>
          <h3>{firstStepTexts.logIn}</h3>
          {data ? (
            <LoginCommand value={data.value} />
          ) : (
            <p>
              <Button disabled={isPending} onClick={() => mutate({ description: firstStepTexts.tokenDescription })}>
                {firstStepTexts.createToken}
              </Button>
            </p>
          )}
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

export function FirstStackNotice({ stack }: { readonly stack: FirstStack }) {
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
