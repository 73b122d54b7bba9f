# The bot alone, as a user who owns nothing but its state folder.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build && install -d -m 700 /out/state && install -d -m 1777 /out/tmp

FROM scratch
LABEL org.opencontainers.image.title="parlour" \
      org.opencontainers.image.description="People on Discord and Slack ask the operator's coding agent, through a sandbox" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/bin/bot /bot
COPY --from=build /out/tmp /tmp
COPY --from=build --chown=65532:65532 /out/state /state
USER 65532:65532
WORKDIR /state
ENV HOME=/state
VOLUME /state
ENTRYPOINT ["/bot"]
CMD ["--help"]
