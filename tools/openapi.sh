#!/usr/bin/env bash
# Lints the daemon's OpenAPI description with Redocly's strict rules. Installs
# the linter by npm, in .tools/redocly; without npm it says so and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

version=2.77.0
if ! command -v npm >/dev/null; then
  echo "openapi: NOT LINTED: npm is missing; install Node.js 22.12 or later"
  exit 0
fi
linter=.tools/redocly/node_modules/@redocly/cli
if [ "$(node -p "require('./$linter/package.json').version" 2>/dev/null || true)" != "$version" ]; then
  npm install --silent --no-audit --no-fund --no-save --prefix .tools/redocly "@redocly/cli@$version"
fi
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
go test -count=1 ./cmd/syncd/internal/httpapi -run '^TestOpenAPI$' -openapi "$PWD/.tools/openapi.json"
node "$linter/bin/cli.js" lint --extends recommended-strict .tools/openapi.json
