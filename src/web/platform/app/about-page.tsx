import { useEffect } from 'react';
import { Code } from '../ui/code.tsx';
import { ExternalLink } from '../ui/external-link.tsx';
import { FactList, FactRow } from '../ui/fact-list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Skeleton } from '../ui/skeleton.tsx';
import { useMe } from './me.ts';

/** What this server is, and how programs reach it. */
export function AboutPage() {
  const me = useMe();
  useEffect(() => {
    document.title = 'About - Holdfast';
  }, []);
  return (
    <Page title="About Holdfast" lead="A self-hosted state backend for the Pulumi CLI.">
      <FactList>
        <FactRow name="Version">{me === undefined ? <Skeleton width={48} /> : <code>{me.version}</code>}</FactRow>
        <FactRow name="Licence">
          <ExternalLink href="https://www.apache.org/licenses/LICENSE-2.0">Apache License 2.0</ExternalLink>
        </FactRow>
        <FactRow name="API">
          <a href="/api/openapi.json">Description of all calls (OpenAPI)</a>
        </FactRow>
        <FactRow name="Account">
          <a href="/account">Sessions and passkeys of your account</a>
        </FactRow>
      </FactList>
      <Section title="Log in with the CLI">
        <Code>{`pulumi login ${location.origin}`}</Code>
      </Section>
    </Page>
  );
}
